"""Values that the tests of the ingress share."""

from decimal import Decimal

from msgspec.structs import replace

from tests.clocks import FixedClock
from tollgate.core.ids import IdSource
from tollgate.core.records.generation import GenerationRecord, RoutingTrace
from tollgate.core.request import GenerationRequest
from tollgate.core.usage import Usage
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.chat_completions import ChatCompletions
from tollgate.ingress.chat_completions.render import ChatRenderer

EPISODE_ID = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"

SERVED = ServedBy(
    generation_id="Na1b2c3d4e5f6g7",
    created_s=1_790_000_000,
    model="test/echo",
    provider="simulator",
    provider_name="The Simulator",
)

RECORD = GenerationRecord(
    id=SERVED.generation_id,
    created_s=SERVED.created_s,
    workspace_id="w",
    key_id="k",
    outcome="ok",
    streamed=True,
    catalog_sha="sha",
    trace=RoutingTrace(
        requested_model="test/echo",
        route=None,
        rule=None,
        draw_key_hash="",
        tier=None,
        capabilities=(),
        estimated_input_tokens=1,
        output_tokens_max=None,
    ),
    model="test/echo",
    provider="simulator",
    usage=Usage(uncached_input_tokens=3, cache_read_input_tokens=4, output_tokens=5),
    cost_nano_usd=1_234_567_891,
)


def chat_completions() -> ChatCompletions:
    """The format with ids that never change."""
    ids = IdSource(FixedClock(), entropy=lambda size: bytes(range(size)))
    return ChatCompletions(ids)


def renderer(
    *, usage_on_finish: bool = False, served: ServedBy = SERVED, credits_per_usd: str = "1"
) -> ChatRenderer:
    """A renderer of a call that says nothing special."""
    call = ParsedCall(
        request=GenerationRequest(model="test/echo", messages=()),
        stream=True,
        usage_on="finish" if usage_on_finish else None,
        episode_id=EPISODE_ID,
    )
    return chat_completions().renderer(call, served, credits_per_usd=Decimal(credits_per_usd))


def record(**changes: object) -> GenerationRecord:
    """The record with some fields changed."""
    return replace(RECORD, **changes)  # type: ignore[arg-type]
