"""Runs a generation behind its guardrails."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tollgate.core.content import ResultContent
from tollgate.core.errors import invalid_request
from tollgate.core.work.base import Work
from tollgate.core.work.kinds import WORK_KINDS
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.guardrails.bounds import BoundedGuard, bound_guards
from tollgate.engine.guardrails.guarded_sink import GuardedSink
from tollgate.engine.guardrails.input_screen import InputScreen
from tollgate.engine.guardrails.judges import ModelJudge, unlimited
from tollgate.engine.guardrails.judging import AnswerRefused, Blocked, Judging
from tollgate.engine.meter import Meter
from tollgate.engine.replies.sink import EventSink
from tollgate.engine.work.inner_calls import InnerCalls
from tollgate.routing.planning.plan import Plan

Stream = Callable[[EventSink], Awaitable[None]]


def find_guards(gateway: Gateway, call: Call, plan: Plan) -> tuple[BoundedGuard, ...]:
    """Return the guardrails of a call.

    Raises RequestError for work whose result no guardrail can judge, and GatewayError if a model
    cannot judge.
    """
    work, now_s = call.parsed.request, gateway.clock.now_s()
    guards = bound_guards(gateway.planner, work, call.principal, plan, now_s=now_s)
    for guard in guards:
        if WORK_KINDS[work.kind].is_job:
            message = f"The guardrail {guard.name} cannot judge requests that a worker answers."
            raise invalid_request(message, "model")
        if work.kind == "transcription" and "output" in guard.row.stages:
            message = f"The guardrail {guard.name} judges answers, and cannot judge transcripts."
            raise invalid_request(message, "model")
    return guards


class GuardedGeneration:
    """Guardrails of a generation whose money is held."""

    def __init__(
        self, guards: Sequence[BoundedGuard], gateway: Gateway, call: Call, meter: Meter
    ) -> None:
        self._meter = meter
        self._choices = call.parsed.request.answers
        calls = InnerCalls(
            planner=gateway.planner,
            providers=gateway.providers,
            clock=gateway.clock,
            ids=gateway.ids,
            when_s=meter.created_s,
        )
        judge = unlimited(call.principal, call.parsed.request)
        self._judging = Judging(
            {guard.name: guard.row for guard in guards},
            {
                guard.name: ModelJudge(row=guard.row, calls=calls, principal=judge)
                for guard in guards
            },
            meter,
            gateway.clock,
        )
        self._screen = InputScreen(self._judging, gateway.computations(call))

    async def admit(self, work: Work) -> Work:
        """Return the work in the form that providers may receive; see `InputScreen.admit`."""
        return await self._screen.admit(work)

    async def admit_result(self, content: tuple[ResultContent, ...]) -> tuple[ResultContent, ...]:
        """Return a tool's result in the form that the model and the caller may receive."""
        return await self._screen.admit_result(content)

    async def admit_arguments(self, arguments: str) -> str:
        """Return a call's arguments in the form that a tool of the gateway may receive."""
        try:
            return await self._judging.judge_arguments(arguments, is_text=False, restores=False)
        except Blocked as blocked:
            raise AnswerRefused from blocked

    async def stream(self, sink: EventSink, stream: Stream) -> None:
        """Stream an answer behind the guardrails; a refused answer ends with `content_filter`."""
        guarded = GuardedSink(sink, self._judging, self._screen, choices=self._choices)
        try:
            await stream(guarded)
        except asyncio.CancelledError:
            failure = self._screen.take_failure()
            if failure is None:
                raise
            raise failure from None
        except AnswerRefused:
            await guarded.end_refused(self._meter.note_end)
        finally:
            await self._screen.aclose()
