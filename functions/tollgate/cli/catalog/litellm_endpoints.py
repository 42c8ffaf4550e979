"""Conversion of a LiteLLM deployment to an endpoint with a provider, a price and limits."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import ValidationError

from tollgate.cli.catalog.litellm_config import Deployment
from tollgate.cli.catalog.price_map import map_prefix
from tollgate.cli.routing.published_prices import Unpublished, find_published_price
from tollgate.routing.routing_file import Routing
from tollgate.routing.schema import ProviderSection

PlainSection: TypeAlias = dict[str, Any]
_MILLION: Final = Decimal(1_000_000)
# Prefixes of self-hosted servers, whose tokens cost nothing.
_OWN_SERVERS: Final = frozenset(
    {"hosted_vllm", "llamafile", "lm_studio", "ollama", "ollama_chat", "vllm", "xinference"}
)
# Prefixes of servers with OpenAI's format.
_ALIKE: Final = frozenset({"custom_openai", "litellm_proxy", "openai"})
_BEDROCK_ROUTE: Final = re.compile(r"(converse|invoke|converse_like|[a-z]{2}-[a-z]+-[0-9])/")
_CONTEXT_ASSUMED: Final = 8192
_OUTPUT_ASSUMED: Final = 4096
# Parameters that need no note, because the import reads them or the provider's section has them.
_READ: Final = frozenset(
    {
        "api_base",
        "api_key",
        "base_url",
        "custom_llm_provider",
        "input_cost_per_token",
        "max_input_tokens",
        "max_output_tokens",
        "mode",
        "model",
        "output_cost_per_token",
        "rpm",
        "supports_function_calling",
        "supports_reasoning",
        "supports_vision",
        "tpm",
        "weight",
    }
)
_ABILITIES: Final = {"supports_function_calling": "tools", "supports_reasoning": "reasoning"}


class Unplaced(ValueError):
    """Raised for a deployment that cannot be converted; the message gives the reason."""


class PlacedEndpoint(Struct, kw_only=True):
    """An endpoint made from a deployment, with the sections of its provider and model."""

    provider: str
    row: PlainSection
    endpoint: PlainSection
    model: PlainSection
    known_as: str | None
    """Slug of the model that has this endpoint in the base file; None if there is no such model."""
    notes: list[str]

    @property
    def kind(self) -> str:
        """The kind of work that the model does."""
        return str(self.model.get("kind", "chat"))


class Placement:
    """A converter of deployments that takes providers, models and prices from a base file."""

    def __init__(self, base: Routing, today: date) -> None:
        self._base = base
        self._today = today
        self._rows = {
            slug: section.model_dump(mode="python", by_alias=True, exclude_unset=True)
            for slug, section in base.providers.items()
        }

    def place(self, deployment: Deployment) -> PlacedEndpoint:
        """Return the endpoint for a deployment; raise Unplaced if the deployment has none."""
        prefix, upstream = self._split(deployment.model)
        provider, row, notes = self._row(deployment, prefix, upstream)
        notes += [f"its {key} has no counterpart" for key in deployment.params if key not in _READ]
        base_offer = self._known(provider, upstream) if provider in self._rows else None
        if base_offer is not None:
            slug, endpoint, model = base_offer
            return PlacedEndpoint(
                provider=provider,
                row=row,
                endpoint=endpoint,
                model=model,
                known_as=slug,
                notes=notes,
            )
        mode = deployment.fact("mode") or "chat"
        if mode not in ("chat", "responses", "completion"):
            raise Unplaced(
                f"mode {mode} is unknown: only chat models and models in the base file are imported"
            )
        price, context = self._price(deployment, prefix, row, upstream)
        model = dict(self._limits(deployment, upstream, context, notes))
        endpoint = {"provider": provider, "upstream": upstream, **price}
        return PlacedEndpoint(
            provider=provider, row=row, endpoint=endpoint, model=model, known_as=None, notes=notes
        )

    def list_models_of(self, wildcard: str) -> list[str]:
        """Return the models in the base file that match a wildcard such as `anthropic/*`."""
        prefix = wildcard.removesuffix("*").rstrip("/")
        return [
            slug
            for slug, model in self._base.models.items()
            if any(
                map_prefix(self._base.providers[each.provider]) == prefix
                for each in model.endpoints
            )
        ]

    def _prefixes(self, provider: str) -> set[str]:
        """Return the prefixes that LiteLLM may use for a provider."""
        return {provider, map_prefix(self._base.providers[provider])} - {""}

    def _split(self, model: str) -> tuple[str, str]:
        prefix, slash, upstream = model.partition("/")
        if prefix == "bedrock" and slash:
            return prefix, _BEDROCK_ROUTE.sub("", upstream)
        prefixes = {name for slug in self._base.providers for name in self._prefixes(slug)}
        if slash and (prefix in prefixes | _OWN_SERVERS | _ALIKE | {"azure", "azure_ai"}):
            return prefix, upstream
        # LiteLLM knows the provider of a name without a prefix; here, the base file must state the
        # provider.
        for section in self._base.models.values():
            for endpoint in section.endpoints:
                if endpoint.upstream == model:
                    return endpoint.provider, model
        if slash:
            raise Unplaced(_no_row(prefix))
        raise Unplaced(f"no provider in the base file has {model}: write it as provider/model")

    def _row(
        self, deployment: Deployment, prefix: str, upstream: str
    ) -> tuple[str, PlainSection, list[str]]:
        address = deployment.params.get("api_base") or deployment.params.get("base_url")
        if deployment.variable("api_base"):
            raise Unplaced("api_base is in the environment: write the address into the config")
        if prefix in ("azure", "azure_ai") or (address and prefix in _OWN_SERVERS | _ALIKE):
            return _own_row(deployment, prefix, str(address or ""))
        if prefix in _OWN_SERVERS:
            raise Unplaced("api_base is missing: write the address of the server")
        found = [slug for slug in self._base.providers if prefix in self._prefixes(slug)]
        if prefix == "bedrock":
            found = [slug for slug, row in self._base.providers.items() if row.region]
        if not found:
            raise Unplaced(_no_row(prefix))
        slug = next((each for each in found if self._known(each, upstream)), found[0])
        row = dict(self._rows[slug])
        key = dict(row.get("key") or {})
        variable = deployment.variable("api_key")
        notes = _key_notes(deployment, key.get("env"))
        if variable and key and variable != key.get("env"):
            return f"{slug}-{_slug(variable)}", row | {"key": {"env": variable}}, notes
        return slug, row, notes

    def _known(self, provider: str, upstream: str) -> tuple[str, PlainSection, PlainSection] | None:
        for slug, section in self._base.models.items():
            for endpoint in section.endpoints:
                if (endpoint.provider, endpoint.upstream) == (provider, upstream):
                    plain = section.model_dump(mode="python", by_alias=True, exclude_unset=True)
                    index = section.endpoints.index(endpoint)
                    offer = dict(plain.pop("endpoints")[index])
                    offer.pop("weight", None)
                    return slug, offer, plain
        return None

    def _price(
        self, deployment: Deployment, prefix: str, row: PlainSection, upstream: str
    ) -> tuple[PlainSection, int | None]:
        """Return the price; and if genai-prices publishes both, the context size."""
        rates = [deployment.fact(f"{side}_cost_per_token") for side in ("input", "output")]
        if None not in rates:
            source = {"source": "the config of LiteLLM", "checked": self._today}
            paid = [_per_million(rate) for rate in rates]
            return {"price": {"input": paid[0], "output": paid[1], **source}}, None
        base = str(deployment.facts.get("base_model") or upstream).rpartition("/")[2]
        section = ProviderSection.model_validate(row)
        for name in (upstream, base):
            try:
                found = find_published_price(section, name, self._today)
            except Unpublished:
                continue
            price = found.price.model_dump(by_alias=True, exclude_none=True)
            overrides = [
                each.model_dump(by_alias=True, exclude_none=True) for each in found.overrides
            ]
            return {"price": price} | ({"overrides": overrides} if overrides else {}), found.context
        if prefix in _OWN_SERVERS:
            zero = {"input": Decimal(0), "output": Decimal(0)}
            free = {**zero, "source": "our own machines", "checked": self._today}
            return {"price": free}, None
        raise Unplaced(
            "no price is published: state input_cost_per_token and output_cost_per_token"
        )

    def _limits(
        self, deployment: Deployment, upstream: str, published: int | None, notes: list[str]
    ) -> Iterator[tuple[str, Any]]:
        base = str(deployment.facts.get("base_model") or upstream).rpartition("/")[2]
        base_model = next(
            (
                section
                for section in self._base.models.values()
                if any(each.upstream.rpartition("/")[2] == base for each in section.endpoints)
            ),
            None,
        )
        context = deployment.fact("max_input_tokens") or (
            base_model.context if base_model else published
        )
        output = deployment.fact("max_output_tokens") or (
            base_model.max_output if base_model else None
        )
        limits: dict[str, int] = {}
        for name, tokens, assumed in (
            ("context", context, _CONTEXT_ASSUMED),
            ("max_output", output, _OUTPUT_ASSUMED),
        ):
            limits[name] = tokens if isinstance(tokens, int) and tokens > 0 else assumed
            if limits[name] != tokens:
                notes.append(f"its {name} is unknown: {assumed} assumed")
        yield "context", max(limits.values())
        yield "max_output", limits["max_output"]
        vision = ["text", "image"] if deployment.fact("supports_vision") else ["text"]
        yield "input", list(base_model.input) if base_model else vision
        stated = [name for key, name in _ABILITIES.items() if deployment.fact(key)]
        yield "supports", list(base_model.supports) if base_model else stated


def _per_million(rate: Any) -> Decimal:
    """Return the rate per million tokens for a rate per token."""
    try:
        paid = Decimal(str(rate)) * _MILLION
    except ArithmeticError:
        paid = Decimal("NaN")
    if not paid.is_finite() or paid < 0:
        raise Unplaced("the price is not a number of dollars")
    return paid.normalize()


def _own_row(
    deployment: Deployment, prefix: str, address: str
) -> tuple[str, PlainSection, list[str]]:
    """Return a new provider section for the server address in the config."""
    try:
        parts = urlsplit(address if "://" in address else f"https://{address}")
    except ValueError as malformed:
        raise Unplaced("api_base is not an address") from malformed
    if not parts.hostname:
        raise Unplaced("api_base is missing: write the address of the server")
    path = parts.path.rstrip("/")
    if prefix in ("azure", "azure_ai"):
        path = "/openai/v1"
    elif prefix in ("ollama", "ollama_chat"):
        path = "/v1"
    row: PlainSection = {
        "codec": "openai_chat",
        "transport": "http_sse",
        "base_url": f"{parts.scheme}://{parts.netloc}{path}",
    }
    if parts.scheme == "http":
        row["private"] = True
    if prefix.startswith("azure"):
        row["auth"] = "api-key"
    if variable := deployment.variable("api_key"):
        row["key"] = {"env": variable}
    try:
        ProviderSection.model_validate(row)
    except ValidationError as refused:
        # The message leaves out the user information in the URL, which may contain a password.
        shown = f"{parts.scheme}://{parts.hostname}{path}"
        raise Unplaced(f"api_base cannot be the address of a provider: {shown}") from refused
    slug = _slug(f"{prefix}-{parts.hostname.split('.')[0]}")
    return slug, row, _key_notes(deployment, None)


def _no_row(prefix: str) -> str:
    return f"the base file has no provider {prefix}: add it, see docs/adding-a-provider.md"


def _key_notes(deployment: Deployment, variable: str | None) -> list[str]:
    literal = deployment.params.get("api_key")
    if not isinstance(literal, str) or deployment.variable("api_key"):
        return []
    where = f"in {variable}" if variable else "as key: { env: ... }"
    return [f"the key in the config was not copied: set it {where}"]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:64]
