"""Answers identical requests from a store, on routes with `cache` and for keys that opt in.

Imported with the first request of such a key.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from itertools import groupby
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.buffer_budget import Buffered
from tollgate.core.content import Refusal
from tollgate.core.errors import BufferFull, GatewayError
from tollgate.core.events import (
    Chosen,
    ChosenGroup,
    Ended,
    PartDelta,
    PartStart,
    UsageReported,
    ungroup,
)
from tollgate.core.money.amounts import usd
from tollgate.core.records.generation import Fee, GenerationRecord, ReusedAnswer
from tollgate.core.response import buffered_size
from tollgate.engine.attempts import AttemptContext, CommittedAttempt, served_by
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.guardrails.bounds import BoundedGuard
from tollgate.engine.replies.self_contained import is_self_contained
from tollgate.engine.replies.sink import EventSink
from tollgate.ingress.base import ParsedCall, ParsedWork, ServedBy
from tollgate.routing.chains import CacheSection
from tollgate.routing.planning.plan import Plan
from tollgate.stores.ports.base import AnswerCache, Hold

_log: Final = logging.getLogger(__name__)

# Maximum size in bytes of a stored answer, counted as in the request's buffer.
ANSWER_BYTES_MAX: Final = 1_000_000
REUSE_ITEM: Final = "reused_answer"
# Changed if stored answers of an earlier release must not be used.
_VERSION: Final = 1
# Fields that do not affect the answer: the length of the body, and the session for weighted draws.
_LEFT_OUT: Final = {"size_bytes", "session_id"}
_FINISHED: Final = frozenset({"stop", "tool_calls"})
_HARMLESS: Final = frozenset({"pass", "flag"})


class CachedAnswer(Struct, frozen=True, kw_only=True):
    """A complete answer as the provider gave it, before guardrails."""

    generation_id: str
    endpoint_id: str
    stored_s: float
    cost_nano_usd: int
    adapted: tuple[str, ...]
    events: tuple[Chosen, ...]


class AnswerCaching(Struct, frozen=True, kw_only=True):
    """Looks for the answer to one request, and stores a new one."""

    store: AnswerCache
    section: CacheSection
    workspace_id: str
    name: str
    """Hash of everything on which the answer depends."""
    reads: bool
    """False if the caller wants a new answer, which replaces the stored one."""
    price_max_nano_usd: int
    """Part of the plan's maximum cost that is not for guardrails."""

    async def answer(self, context: AttemptContext, sink: EventSink) -> bool:
        """Send the stored answer, and return True; return False if there is none.

        Guardrails judge the request and the answer again.
        """
        found = await self._find(context) if self.reads else None
        if found is None:
            return False
        if context.guards is not None:
            await context.guards.admit(context.media.request)
        meter = context.meter
        attempt = next(
            it for it in context.plan.attempts if it.target.endpoint_id == found.endpoint_id
        )
        price = min(
            found.cost_nano_usd * self.section.price_percent // 100, self.price_max_nano_usd
        )
        age_s = int(context.gateway.clock.now_s() - found.stored_s)
        served = served_by(context, attempt, adapted=found.adapted)
        await sink.begin(replace(served, cache=f"hit; age={age_s}"))
        saved_nano_usd = found.cost_nano_usd - price
        reused = ReusedAnswer(generation_id=found.generation_id, saved_nano_usd=saved_nano_usd)
        meter.reuse(attempt.target, found.adapted, reused)
        if price:
            meter.charge(Fee(item=REUSE_ITEM, quantity=1, usd_each=usd(price)))
        for choice, event in found.events:
            meter.observe(event, choice)
            await sink.send([(choice, event)])
        return True

    async def _find(self, context: AttemptContext) -> CachedAnswer | None:
        try:
            content = await self.store.get(self.workspace_id, self.name)
            found = None if content is None else msgspec.json.decode(content, type=CachedAnswer)
        except (GatewayError, ValueError) as failure:
            _log.warning("a stored answer could not be read: %s", failure)
            return None
        if found is None or found.stored_s + self.section.ttl_s <= context.gateway.clock.now_s():
            return None
        return found if found.endpoint_id in context.plan.endpoint_ids else None

    def collecting(self, sink: EventSink) -> "CollectingSink":
        """Return a sink that collects a new answer."""
        return CollectingSink(sink, self)


class CollectingSink:
    """A sink that forwards an answer and collects its events, unless these are too large."""

    def __init__(self, sink: EventSink, caching: AnswerCaching) -> None:
        self._sink = sink
        self._caching = caching
        self._buffered = Buffered(ANSWER_BYTES_MAX)
        # Events so far; None if the answer is too large.
        self._events: list[Chosen] | None = []

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        return self._sink.open(hold)

    async def begin(self, served: ServedBy) -> None:
        await self._sink.begin(replace(served, cache="miss"))

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        await self._sink.send(events)
        for choice, event in ungroup(events):
            if self._events is None or isinstance(event, UsageReported):
                continue
            try:
                self._buffered.take(buffered_size(event))
                self._events.append((choice, event))
            except BufferFull:
                self._events = None

    async def keep(self, context: AttemptContext, attempt: CommittedAttempt) -> None:
        """Store a complete answer; only log a failure, because the answer is already paid for."""
        meter, events, caching = context.meter, self._events, self._caching
        verdicts = {each.verdict for each in meter.judgements.values()}
        if events is None or not verdicts <= _HARMLESS or not _is_whole(events):
            return
        # A reused answer is judged again.
        judged_nano_usd = sum(each.cost_nano_usd for each in meter.judgements.values())
        answer = CachedAnswer(
            generation_id=meter.hold.id,
            endpoint_id=attempt.target.endpoint_id,
            stored_s=context.gateway.clock.now_s(),
            cost_nano_usd=meter.cost_nano_usd() - judged_nano_usd,
            adapted=attempt.adapted,
            events=tuple(_join_deltas(events)),
        )
        try:
            await caching.store.put(caching.workspace_id, caching.name, msgspec.json.encode(answer))
        except GatewayError as failure:
            _log.warning("answer %s could not be stored: %s", meter.hold.id, failure)

    async def finish(self, record: GenerationRecord) -> None:
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        await self._sink.fail(error, record)


def find_caching(
    gateway: Gateway, call: Call, plan: Plan, guards: Sequence[BoundedGuard]
) -> AnswerCaching | None:
    """Return how a request may be answered from the cache; None if it may not be."""
    route = plan.trace.route
    section = gateway.planner.catalog.routes[route].cache if route is not None else None
    directives = {each.strip().lower() for each in call.cache_control.split(",")}
    if (
        gateway.answer_cache is None
        or section is None
        or "no-store" in directives
        or not is_repeatable(call.parsed)
    ):
        return None
    principal = call.principal
    depends_on = (
        _VERSION,
        principal.workspace_id,
        principal.key_id if principal.answer_sharing == "key" else None,
        plan.catalog_sha,
        route,
        call.ingress_format,
        sorted(plan.endpoint_ids),
        sorted(guard.name for guard in guards),
        _plain(call.parsed.request),
    )
    return AnswerCaching(
        store=gateway.answer_cache,
        section=section,
        workspace_id=principal.workspace_id,
        name=sha256(repr(depends_on).encode()).hexdigest(),
        price_max_nano_usd=plan.cost_max_nano_usd - sum(each.cost_max_nano_usd for each in guards),
        reads="no-cache" not in directives,
    )


def is_repeatable(parsed: ParsedWork) -> bool:
    """Return True if a repeated request may get the same answer, and nothing but the answer."""
    if not isinstance(parsed, ParsedCall) or not is_self_contained(parsed):
        return False
    sampling = parsed.request.sampling
    # With a temperature and no seed, a caller asks for answers that differ.
    return not sampling.temperature or sampling.seed is not None


def _is_whole(events: Iterable[Chosen]) -> bool:
    """Return True for an answer that ended by itself, without a refusal."""
    return all(
        event.finish in _FINISHED and not event.paused
        if isinstance(event, Ended)
        else not (isinstance(event, PartStart) and isinstance(event.part, Refusal))
        for _, event in events
    )


def _join_deltas(events: Iterable[Chosen]) -> Iterator[Chosen]:
    """Yield the events, with consecutive deltas of a part as one."""
    for place, group in groupby(events, _place_of_delta):
        if place is None:
            yield from group
        else:
            choice, index = place
            text = "".join(event.text for _, event in group if isinstance(event, PartDelta))
            yield choice, PartDelta(index=index, text=text)


def _place_of_delta(chosen: Chosen) -> tuple[int, int] | None:
    choice, event = chosen
    return (choice, event.index) if isinstance(event, PartDelta) else None


def _plain(value: object) -> object:
    """Return a value in a form whose `repr` is the same in every process.

    The types of structs are included, because a user's message and an assistant's have the same
    fields.
    """
    match value:
        case Struct():
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            stated = {name: fields[name] for name in fields if name not in _LEFT_OUT}
            return type(value).__name__, _plain(stated)
        case Mapping():
            return {name: _plain(value[name]) for name in sorted(value)}
        case tuple() | list():
            return [_plain(each) for each in value]
        case AbstractSet():
            return sorted(value)
        case _:
            return value
