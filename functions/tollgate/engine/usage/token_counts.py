"""Counts the tokens in a prompt: asks the provider if possible, and otherwise estimates
the count.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

import pydantic_core
from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.clock import Clock
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import ErrorCode, GatewayError, UpstreamError
from tollgate.core.ownership import UNOWNED, OwnerScope
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.core.work.base import InputWork
from tollgate.engine.admission import admit
from tollgate.engine.choices import EncodedAttempt, encode_attempt
from tollgate.engine.documents.document_reading import reads_itself
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.files.named_files import find_named_files
from tollgate.engine.gateway import Gateway
from tollgate.engine.side_thread import Computations
from tollgate.providers.ports.base import TokenCounter, UpstreamRefused, WireRequest
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.providers.shared.counts import Counts
from tollgate.routing.planning.plan import Attempt
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.planning.prompt_size import PromptSize

# Imported at first use, because few catalogs have guardrails.
_SELECT_GUARDS: Final = DottedName[Callable[..., Mapping[str, object]]](
    "tollgate.engine.guardrails.bounds:select_guards"
)
# Time limit for a count: a person waits for it, and an estimate is free.
COUNT_S: Final = 5.0
# Maximum number of counts per key, minute and process that are requested from providers; an agent
# requests 14 together. Above this number, the estimate is returned, so that no key can use up the
# provider's own limit.
COUNTS_PER_MINUTE_MAX: Final = 120
_MINUTE_S: Final = 60
# Errors that refuse a generation but not a count, which is free and has no size limit.
_UNCOUNTED: Final = frozenset({ErrorCode.CONTEXT_LENGTH_EXCEEDED, ErrorCode.KEY_LIMIT_EXCEEDED})


class TokenCount(Struct, frozen=True, kw_only=True):
    """Number of tokens in a prompt."""

    tokens: int
    is_exact: bool
    failure: ErrorCode | None = None
    """Error code if the provider failed to count; otherwise None."""


class CountPace:
    """The number of token counts that each key has requested in the current minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._minute = 0
        self._requested: dict[str, int] = {}

    def admits(self, key_id: str) -> bool:
        """Record one request for a key; return False if the key is over its limit."""
        minute = int(self._clock.now_s() // _MINUTE_S)
        if minute != self._minute:
            self._minute, self._requested = minute, {}
        requested = self._requested[key_id] = self._requested.get(key_id, 0) + 1
        return requested <= COUNTS_PER_MINUTE_MAX


async def count_tokens(
    gateway: Gateway,
    request: GenerationRequest,
    *,
    principal: Principal,
    reach: OwnerScope = UNOWNED,
    request_id: str,
    pace: CountPace,
    is_large: bool = False,
) -> TokenCount:
    """Count the tokens in a prompt with the tokenizer of the model that would serve it.

    Nothing is held, billed or recorded. Raises GatewayError if the request would be refused. If the
    provider fails or is slow, the estimate is returned.
    """
    computations = Computations(gateway.side, principal.workspace_id, is_large)
    compute = computations.run
    if await compute(lambda: request.names_files):
        request = await find_named_files(gateway.files, reach, request, computations=computations)
    size = await compute(partial(PromptSize.of, request))
    estimate = TokenCount(tokens=size.estimate, is_exact=False)
    find = partial(_find_counting, gateway, request, principal=principal, request_id=request_id)
    try:
        attempt = await compute(find)
    except GatewayError as refusal:
        if refusal.code not in _UNCOUNTED:
            raise
        return estimate
    if attempt is None or await compute(partial(_is_read_here, gateway, request, attempt)):
        return estimate
    has_guards = gateway.planner.catalog.guardrails or principal.guardrails
    if has_guards and _SELECT_GUARDS()(gateway.planner, request, principal):
        # A provider gets no text that a guardrail has not judged.
        return estimate
    if not pace.admits(principal.key_id):
        return replace(estimate, failure=ErrorCode.RATE_LIMIT_EXCEEDED)
    try:
        async with asyncio.timeout(COUNT_S):
            with gateway.buffers.open(principal.workspace_id):
                media = RequestMedia(gateway.media, request, gateway.files, computations)
                if not await compute(partial(media.is_whole_for, attempt.target)):
                    await admit(gateway, principal, request_id)
                tokens = await _ask(gateway, principal, media, attempt, computations=computations)
    except TimeoutError:
        return replace(estimate, failure=ErrorCode.PROVIDER_TIMEOUT)
    except UpstreamError as failure:
        return replace(estimate, failure=failure.code)
    return TokenCount(tokens=tokens, is_exact=True) if tokens is not None else estimate


def _find_counting(
    gateway: Gateway, request: GenerationRequest, *, principal: Principal, request_id: str
) -> Attempt | None:
    """Return the first endpoint that can count for the serving model; None if none can."""
    planning_request = PlanningRequest.of(request, principal=principal, request_id=request_id)
    # A prompt that is too long is counted too, because its length is what the caller wants to know.
    plan = gateway.planner.plan(
        replace(planning_request, input_tokens_min=0, ceiling=None), now_s=gateway.clock.now_s()
    )
    model = plan.attempts[0].target.model
    return next(
        (
            attempt
            for attempt in plan.attempts
            if attempt.target.model == model
            and attempt.target.dialect.counts_tokens
            and _counter(gateway.planner, attempt) is not None
        ),
        None,
    )


def _is_read_here(gateway: Gateway, request: GenerationRequest, attempt: Attempt) -> bool:
    """Return True if the gateway would read a document for the endpoint; a count omits such
    documents.
    """
    if gateway.reader is None or not request.has_documents:
        return False
    return not reads_itself(attempt.target, request)


def _counter(planner: Planner, attempt: Attempt) -> TokenCounter | None:
    row = planner.catalog.providers[attempt.target.provider]
    counter = WIRE_FORMATS[row.codec].counter
    return counter() if counter is not None else None


async def _ask(
    gateway: Gateway,
    principal: Principal,
    media: RequestMedia,
    attempt: Attempt,
    *,
    computations: Computations,
) -> int | None:
    """Return the provider's count; None if the provider cannot count. Raises UpstreamError on
    failure.
    """
    counter = _counter(gateway.planner, attempt)
    if counter is None:
        return None
    provider = gateway.providers.provider(attempt.target.provider, principal)
    inlined = await media.inline(attempt.target)
    if isinstance(inlined, InputWork):
        return None
    encoded = await computations.run(partial(encode_attempt, provider, attempt, inlined))
    counting = counter.encode(encoded.wires[0], attempt.target)
    if counting is None:
        return None
    found = _read(await _exchange(encoded, counting), counter.fields)
    if found is None:
        raise UpstreamError(
            ErrorCode.PROVIDER_UNAVAILABLE,
            f"The provider {attempt.target.provider} sent no count.",
        )
    return found


async def _exchange(encoded: EncodedAttempt, counting: WireRequest) -> bytes:
    attempt = encoded.attempt
    try:
        async with encoded.transport.open(counting, attempt.timeouts) as frames:
            async for read_frames in frames:
                return read_frames[0].data
    except UpstreamRefused as refused:
        raise encoded.codec.error(refused, attempt.target) from refused
    return b""


def _read(body: bytes, fields: Sequence[str]) -> int | None:
    try:
        reply = pydantic_core.from_json(body)
    except ValueError:
        return None
    return Counts(reply).first(*fields)
