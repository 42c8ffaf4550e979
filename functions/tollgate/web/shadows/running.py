"""The worker of shadow runs, which calls the shadow model at most once for each request."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Final

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from tollgate.core.background import RUN_MAX_S
from tollgate.core.clock import Clock, Deadline
from tollgate.core.content import Part
from tollgate.core.errors import GatewayError
from tollgate.core.events import ChosenGroup
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord, ShadowTrace
from tollgate.core.request import GenerationRequest
from tollgate.core.response import Fold
from tollgate.core.shadows import REST_S, TOO_LATE_S, ShadowRun, claim
from tollgate.core.tracing import PlatformIds
from tollgate.engine.batches.worker import GatewaySource
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import generate
from tollgate.engine.replies.content_log import ContentLog
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.routing.chains import ShadowSection
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.planning.shadows import without_order
from tollgate.stores.ports.base import Hold, KeyDirectory
from tollgate.stores.ports.batches import BatchPlace, JobStore, LineRecords
from tollgate.web.access import METERED
from tollgate.web.chat_app import MeteredEndpoint
from tollgate.web.generation.entrance import Entered
from tollgate.web.http.reply import is_large_body
from tollgate.web.shadows.comparing import (
    Question,
    StoredContent,
    TracingLedger,
    compare_answers,
    trace_of,
)
from tollgate.web.shadows.sending import can_be_shadowed

_log: Final = logging.getLogger(__name__)

# Minimum time in seconds that a worker must have left to begin a run.
_RUN_MIN_S: Final = 60.0
_MARK_BYTES: Final = 12
# Stages of guardrails that judge what a provider gets, and verdicts that leave it unchanged. The
# arguments of earlier calls are part of a request, and have the stage of the answer's own calls.
_SENT: Final = frozenset({"input", "tool_arguments", "tool_results"})
_HARMLESS: Final = frozenset({"pass", "flag"})


class ShadowWorkerServices(Struct, frozen=True, kw_only=True):
    """Services that workers of shadow runs use."""

    store: JobStore[ShadowRun]
    records: LineRecords
    contents: ContentLog
    keys: KeyDirectory
    gateways: GatewaySource
    endpoints: Mapping[str, MeteredEndpoint]
    """Endpoints that parse the stored requests, by the name of the client format."""
    ids: IdSource
    clock: Clock


class _Original(Struct, frozen=True, kw_only=True):
    """A generation that may be repeated, with its key and its stored content."""

    record: GenerationRecord
    content: StoredContent
    caller: Principal
    shadow: ShadowSection
    route: str
    gateway: Gateway


class _Comparison(Struct, frozen=True, kw_only=True):
    """A generation that no caller gets: its call, and the trace for its record."""

    call: Call
    trace: Callable[[GenerationRecord, Sequence[Part]], ShadowTrace]


class ShadowWorker:
    """Carries out shadow runs; a run that fails is not repeated."""

    def __init__(self, services: ShadowWorkerServices) -> None:
        self._services = services
        self.stop = asyncio.Event()
        self.steps = 0
        """The number of runs that this worker has claimed."""

    async def work(self, place: BatchPlace, deadline: Deadline) -> float | None:
        """Carry out a shadow run unless another worker has claimed it.

        Returns the seconds to wait before the next attempt; None if the run has ended.
        """
        store, now_s = self._services.store, self._services.clock.now_s()
        run = await store.get(place)
        if run is None or run.is_ended:
            return None
        if (rest_s := run.created_s + REST_S - now_s) > 0:
            return rest_s
        if self.stop.is_set() or deadline.remaining_s() < _RUN_MIN_S:
            return 0.0
        # Only one worker can make this change, so no provider is called twice.
        shadow_id = self._services.ids.new_id()
        claimed = await store.change(place, partial(claim, shadow_id=shadow_id))
        if claimed is None:
            return None
        self.steps += 1
        if now_s - run.created_s > TOO_LATE_S:
            _log.warning("shadow of %s is too late", run.generation_id)
            return None
        try:
            await self._run(claimed, shadow_id, deadline.sooner(RUN_MAX_S))
        except GatewayError as refusal:
            _log.info("shadow of %s was refused: %s", run.generation_id, refusal.message)
        return None

    async def _run(self, run: ShadowRun, shadow_id: str, deadline: Deadline) -> None:
        original = await self._find_original(run)
        if original is None:
            return
        request = await self._parse(original, deadline)
        if request is None:
            return
        shadow = original.shadow
        payer = await self._services.keys.find_key(shadow.workspace, shadow.key_id)
        payer = replace(payer, work_policies=original.caller.prompt_policies)
        trace = trace_of(original.record, original.route)
        answered = original.content.answer
        record, parts = await self._generate(
            original.gateway,
            _Comparison(
                call=_call(request, payer, original, deadline=deadline, id_=shadow_id),
                trace=lambda record, parts: compare_answers(
                    trace, (original.record, answered), (record, parts)
                ),
            ),
        )
        if shadow.judge is None or record is None or record.outcome != "ok":
            return
        question = Question.of(
            shadow.judge,
            request.request,
            original=answered,
            shadow=parts,
            trace=trace,
            mark=self._services.ids.random_bytes(_MARK_BYTES).hex(),
        )
        judged = replace(record.shadow or trace, judges=True)
        asked, judge_id = ParsedCall(request=question.request), self._services.ids.new_id()
        await self._generate(
            original.gateway,
            _Comparison(
                call=_call(asked, payer, original, deadline=deadline, id_=judge_id),
                trace=lambda _, parts: replace(judged, preferred=question.read(parts)),
            ),
        )

    async def _find_original(self, run: ShadowRun) -> _Original | None:
        """Return the original of a run; None if its content may not or can no longer be read."""
        services, workspace_id = self._services, run.workspace_id
        record = await services.records.get(workspace_id, run.generation_id)
        gateway = await services.gateways.for_key(run.key_id)
        route, shadow = _shadow_of(record, gateway.planner.catalog)
        if record is None or route is None or shadow is None:
            return None
        caller = await services.keys.find_key(workspace_id, run.key_id)
        if caller.content_days is None:
            return None
        stored = await services.contents.get(workspace_id, record.id, days=caller.content_days)
        if stored is None:
            return None
        try:
            content = json.decode(stored, type=StoredContent)
        except MsgspecError:
            _log.warning("the content of %s cannot be read", record.id)
            return None
        return _Original(
            record=record,
            content=content,
            caller=caller,
            shadow=shadow,
            route=route,
            gateway=gateway,
        )

    async def _parse(self, original: _Original, deadline: Deadline) -> ParsedCall | None:
        """Return the request for the shadow's model; raise GatewayError if the caller's key, the
        policies or the model do not allow it.
        """
        gateway, caller, body = original.gateway, original.caller, bytes(original.content.request)
        endpoint = self._services.endpoints.get(original.record.ingress_format)
        if endpoint is None:
            return None
        entered = Entered(
            headers={},
            principal=caller,
            request_id=original.record.id,
            reach=METERED.reach(caller),
            gateway=gateway,
            body=body,
            is_large=is_large_body(body),
        )
        call, _ = await endpoint.read_call(entered, deadline, PlatformIds())
        parsed = call.parsed
        if not isinstance(parsed, ParsedCall) or not can_be_shadowed(parsed):
            return None
        parsed = replace(parsed, request=_for_shadow(parsed.request, original.shadow.model))
        allowed = PlanningRequest.of(
            parsed.request,
            principal=replace(caller, cost_max_nano_usd=None),
            request_id=original.record.id,
        )
        now_s = gateway.clock.now_s()
        await gateway.computations(call).run(lambda: gateway.planner.plan(allowed, now_s=now_s))
        return parsed

    async def _generate(
        self, gateway: Gateway, comparison: _Comparison
    ) -> tuple[GenerationRecord | None, Sequence[Part]]:
        """Generate under a hold of the payer; return the record, if there is one, and the answer.

        The answer is compared before it is settled, and then discarded.
        """
        sink = _FoldingSink()
        ledger = TracingLedger(gateway.ledger, lambda record: comparison.trace(record, sink.parts))
        await generate(replace(gateway, ledger=ledger, answer_cache=None), comparison.call, sink)
        return sink.record, sink.parts


class _FoldingSink:
    """A sink that folds an answer without delivering it."""

    def __init__(self) -> None:
        self._fold = Fold()
        self.record: GenerationRecord | None = None

    @property
    def parts(self) -> Sequence[Part]:
        """The parts of the answer so far."""
        return tuple(self._fold.parts)

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def begin(self, served: ServedBy) -> None:
        """Ignore the attempt, which is in the record."""

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        for _, event in events:
            self._fold.accept(event)

    async def finish(self, record: GenerationRecord) -> None:
        self.record = record

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        self.record = record


def _shadow_of(
    record: GenerationRecord | None, catalog: Catalog
) -> tuple[str | None, ShadowSection | None]:
    """Return the route of a generation with its shadow, if the generation may be repeated.

    The route's models did not make an answer from the cache, and text that a guardrail masked must
    not reach another provider.
    """
    route = record.trace.route if record is not None else None
    section = catalog.routes.get(route) if route is not None else None
    if (
        record is None
        or section is None
        or record.outcome != "ok"
        or record.reused is not None
        or any(each.stage in _SENT and each.verdict not in _HARMLESS for each in record.judgements)
    ):
        return None, None
    return route, section.shadow


def _call(
    parsed: ParsedCall, payer: Principal, original: _Original, *, deadline: Deadline, id_: str
) -> Call:
    return Call(
        principal=payer,
        parsed=parsed,
        request_id=id_,
        deadline=deadline,
        ingress_format=original.record.ingress_format,
        is_large=is_large_body(bytes(original.content.request)),
    )


def _for_shadow(request: GenerationRequest, model: str) -> GenerationRequest:
    """Return the request for the shadow model, with the caller's restrictions on providers, and
    without fields that identify the end user or the session.
    """
    return replace(
        request,
        model=model,
        preset=None,
        preset_variables={},
        user=None,
        metadata={},
        prompt_cache_key=None,
        service_tier=None,
        preferences=without_order(request.preferences),
    )
