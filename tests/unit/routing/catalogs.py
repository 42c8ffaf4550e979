"""Small catalogs for tests, built the way a file would state them."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from tollgate.core.content import Text
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest, RoutingPreferences, Tool, UserMessage
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.plan import Plan
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.routing_file import Routing

# Saturday 2026-11-21, 12:30:01 UTC.
NOW_S = 1795264201.0
RECENTLY = "2026-11-21"


def price(dollars_in: str = "1", dollars_out: str = "2", **rates: str) -> dict[str, object]:
    """Rates of one endpoint, and those of other classes by their names."""
    return {
        "input": Decimal(dollars_in),
        "output": Decimal(dollars_out),
        "source": "made up",
        "checked": RECENTLY,
        **{name: Decimal(rate) for name, rate in rates.items()},
    }


def endpoint(provider: str, upstream: str, **rates: str) -> dict[str, object]:
    """One offer of a model."""
    return {"provider": provider, "upstream": upstream, "price": price(**rates)}


def model(*endpoints: dict[str, object], **facts: object) -> dict[str, object]:
    """A model that takes text."""
    return {
        "name": "A model",
        "context": 100_000,
        "max_output": 10_000,
        "endpoints": endpoints,
        **facts,
    }


# The provider searches by itself, so that prompts are larger than what was sent.
SEARCHER = model(
    endpoint("near", "large-1", dollars_in="3", dollars_out="15", web_search="0.01"),
    supports=("tools",),
)


def provider(**facts: object) -> dict[str, object]:
    """An OpenAI-like row."""
    return {
        "codec": "openai_chat",
        "transport": "http_sse",
        "base_url": "https://provider.example/v1",
        **facts,
    }


def routing(**sections: object) -> Routing:
    """Two providers, three models, an alias and a route; sections given replace these."""
    content = {
        "version": 1,
        "providers": {
            "near": provider(key={"env": "NEAR_API_KEY", "secret": "tollgate/near"}),
            "far": provider(dialect={"developer_role": True}),
        },
        "models": {
            "acme/large": model(
                endpoint("near", "large-1", dollars_in="3", dollars_out="15"),
                endpoint("far", "L", dollars_in="4", dollars_out="20"),
                supports=("tools",),
            ),
            "acme/small": model(endpoint("near", "small-1"), context=1_000, max_output=100),
            "other/tools": model(endpoint("far", "T"), supports=("tools",)),
        },
        "aliases": {"gpt-4o": {"to": "acme/small"}, "best": {"to": "smart"}},
        "routes": {
            "smart": {
                "description": "Small first",
                "try": ("acme/small", "acme/large", "other/tools"),
            },
        },
        **sections,
    }
    return Routing.model_validate(content, strict=True)


def catalog(**sections: object) -> Catalog:
    """Return the same as functions see it; catalogs of equal sections are read once in a run."""
    written = repr(sections)
    if written not in _CATALOGS:
        _CATALOGS[written] = Catalog.from_json(canonical_json(routing(**sections)))
    return _CATALOGS[written]


_CATALOGS: dict[str, Catalog] = {}


def principal(*, models: tuple[str, ...] | None = None, tier: str | None = None) -> Principal:
    """A key."""
    return Principal(
        key_id="key", workspace_id="team", role="inference", label="test", models=models, tier=tier
    )


def request(
    name: str,
    *,
    tools: bool = False,
    size_bytes: int = 300,
    output_tokens_max: int | None = None,
    metadata: Mapping[str, str] | None = None,
    **preferences: Any,
) -> GenerationRequest:
    """A request of a size, which is that of its text and of the marks around its message."""
    text = Text(text="x" * max(0, size_bytes - 16))
    return GenerationRequest(
        model=name,
        messages=(UserMessage(content=(text,)),) if size_bytes >= 16 else (),
        tools=(Tool(name="look_up"),) if tools else (),
        size_bytes=size_bytes,
        output_tokens_max=output_tokens_max,
        metadata=metadata or {},
        preferences=RoutingPreferences(**preferences),
    )


def plan_of(
    catalog: Catalog,
    request: GenerationRequest,
    *,
    principal: Principal,
    request_id: str = "r-1",
    fallbacks: bool = True,
    now_s: float = NOW_S,
) -> Plan:
    """The plan of a request against a catalog."""
    wanted = PlanningRequest.of(
        request, principal=principal, request_id=request_id, fallbacks=fallbacks
    )
    return Planner(catalog).plan(wanted, now_s=now_s)
