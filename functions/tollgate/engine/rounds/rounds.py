"""Runs a generation in rounds: the model calls server tools, gets the results, and continues.

The caller gets a single answer: part numbers continue through all rounds, there is one `Started`
and one `Ended`, usage is added up, and tool runs replace the calls. Only the first round may fall
back to another endpoint, because later rounds continue that endpoint's answer.
"""

from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tollgate.core.content import ServerToolRun, ToolCall
from tollgate.core.errors import UpstreamError
from tollgate.core.events import Ended, PartEnd, PartNote, PartStart, StreamEvent
from tollgate.core.request import AssistantMessage, GenerationRequest, ToolChoice, ToolMessage
from tollgate.core.work.base import Work
from tollgate.engine.attempts import AttemptContext, commit_first
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.replies.sink import EventSink
from tollgate.engine.rounds.citations import earlier_sources
from tollgate.engine.rounds.native_tools import leave_fewer
from tollgate.engine.rounds.round_relay import CoverEnded, OneAnswer, RoundRelay
from tollgate.engine.rounds.tool_injection import CALLS_PER_ROUND_MAX, InjectedTools
from tollgate.engine.rounds.tool_runs import EndedRun, ToolRuns, read_arguments
from tollgate.engine.usage.coverage import Coverage, end_uncovered
from tollgate.providers.ports.base import Target
from tollgate.routing.planning.prompt_size import estimate_tokens

if TYPE_CHECKING:
    from tollgate.engine.guardrails.guards import GuardedGeneration

# Minimum that providers accept as an output limit: 16 at OpenAI
# (https://platform.openai.com/docs/api-reference/responses/create, `max_output_tokens`).
_OUTPUT_TOKENS_MIN: Final = 16
_UNREADABLE: Final = "{}"


async def stream_rounds(
    context: AttemptContext, sink: EventSink, coverage: Coverage, injected: InjectedTools
) -> None:
    """Stream an answer in as many rounds as the model needs and the limit allows."""
    meter = context.meter
    try:
        ended = await _Rounds(context, sink, coverage, injected).converse()
    except CoverEnded:
        await end_uncovered(sink, coverage, meter)
        return
    meter.note_end(ended)
    await sink.send([(0, ended)])


class _Rounds:
    """The rounds of one generation, and the conversation so far."""

    def __init__(
        self,
        context: AttemptContext,
        sink: EventSink,
        coverage: Coverage,
        injected: InjectedTools,
    ) -> None:
        self._context = context
        self._sink = sink
        self._coverage = coverage
        self._injected = injected
        self._answer = OneAnswer(sink, coverage, context.meter)
        self._runs = ToolRuns(context, injected)
        self._request = _require_conversation(context.media.request)
        self._answer.add_sources(earlier_sources(self._request.messages, injected.by_name))
        self._target: Target | None = None
        self._growth_tokens = 0
        self._call_ids = {
            part.id
            for message in self._request.messages
            for part in message.content
            if isinstance(part, ToolCall)
        }

    async def converse(self) -> Ended:
        """Run rounds until the model calls no server tool; return the event that ends
        its answer.
        """
        number, rounds_max = 1, self._injected.bound.rounds_max
        while True:
            relay = await self._ask()
            ended = Ended(
                finish=relay.response.finish,
                raw_finish=relay.response.raw_finish,
                stop_sequence=relay.response.stop_sequence,
            )
            original_calls = relay.own_calls[:CALLS_PER_ROUND_MAX]
            calls = self._name_apart(original_calls)
            goes_on = calls or (relay.is_paused and not relay.has_callers_calls)
            if not goes_on or ended.finish in ("length", "content_filter"):
                return ended
            is_over = number == rounds_max or not self._has_room()
            if is_over and not relay.has_callers_calls:
                # This is the last round, so the tools are not run: no model would read the results.
                return replace(ended, finish="length")
            results = await self._run(original_calls, calls)
            if relay.has_callers_calls:
                return ended
            number += 1
            message = AssistantMessage(content=relay.repeat(calls))
            await self._continue(message, results, is_last=number == rounds_max)

    async def _ask(self) -> RoundRelay:
        """Send the conversation so far, and forward the model's answer."""
        context, relay = self._context, RoundRelay(self._answer, self._is_own)
        attempt = await commit_first(context)
        async with attempt.connection:
            if self._target is None:
                self._target = attempt.target
                await self._sink.begin(attempt.served_by(context))
            await self._answer.send(relay.show(attempt.head))
            try:
                async for events in attempt.rest:
                    await self._answer.send(relay.show(events))
            except UpstreamError as error:
                context.reports.note_failure(attempt.target.endpoint_id, error)
                raise
        self._answer.usage = self._answer.usage.plus(relay.response.usage)
        return relay

    async def _run(
        self, original_calls: Sequence[ToolCall], calls: Sequence[ToolCall]
    ) -> tuple[ToolMessage, ...]:
        """Run the tools, send their runs to the caller, and return the results for the model.

        `original_calls` are the model's calls; `calls` are the same calls with unique ids and valid
        arguments.
        """
        answer, places = self._answer, {}
        begun: list[StreamEvent] = []
        guards = self._context.guards
        if guards is not None:
            admitted = [await guards.admit_arguments(each.arguments) for each in original_calls]
            original_calls = [
                replace(call, arguments=arguments)
                for call, arguments in zip(original_calls, admitted, strict=True)
            ]
            calls = [
                call if call.arguments == _UNREADABLE else replace(call, arguments=arguments)
                for call, arguments in zip(calls, admitted, strict=True)
            ]
        for place, call in enumerate(calls):
            injected = self._runs.find(call.name)
            if injected is not None:
                places[place] = answer.next_index()
                run = ServerToolRun(id=call.id, tool=injected.tool.id, arguments=call.arguments)
                begun.append(PartStart(index=places[place], part=run))
        await answer.send(begun)
        results: dict[int, ToolMessage] = {}
        async with aclosing(self._runs.run(original_calls)) as runs:
            async for ended in runs:
                if guards is not None:
                    ended = await self._admit(guards, ended)
                if ended.place in places:
                    await self._show(ended, places[ended.place])
                result = ended.report.result
                results[ended.place] = ToolMessage(
                    call_id=calls[ended.place].id,
                    content=result.content,
                    failed=result.error is not None,
                )
        return tuple(results[place] for place in range(len(calls)))

    async def _admit(self, guards: "GuardedGeneration", ended: EndedRun) -> EndedRun:
        """Return a run with the result as the guardrails admit it."""
        report = ended.report
        content = await guards.admit_result(report.result.content)
        result = replace(report.result, content=content)
        return replace(ended, report=replace(report, result=result))

    async def _show(self, ended: EndedRun, index: int) -> None:
        answer, report = self._answer, ended.report
        answer.add_sources(report.result.sources)
        events: list[StreamEvent] = [
            PartNote(index=index, note=report.result),
            PartEnd(index=index),
        ]
        for picture in report.made:
            index = answer.next_index()
            events += PartStart(index=index, part=picture), PartEnd(index=index)
        await answer.send(events)

    async def _continue(
        self, message: AssistantMessage, results: tuple[ToolMessage, ...], *, is_last: bool
    ) -> None:
        """Prepare the next round; raise CoverEnded if the hold cannot be extended for it."""
        context, target = self._context, self._target
        # Media fetched for the first round are sent again in every later round.
        request = _require_conversation(
            await context.media.inline(target) if target else context.media.request
        )
        self._growth_tokens += estimate_tokens((message, *results))
        if not await self._coverage.extend_to_round(self._growth_tokens):
            raise CoverEnded
        context.meter.begin_round(prompt_growth_tokens=self._growth_tokens)
        request = replace(
            request,
            messages=(*request.messages, message, *results),
            output_tokens_max=self._output_left(),
            server_tools=leave_fewer(
                self._request.server_tools, self._answer.usage.web_searches or 0
            ),
            # The endpoint was chosen in the first round, so its parameters are not checked again.
            preferences=replace(request.preferences, require_parameters=False),
            **self._offer(request, is_last=is_last),
        )
        plan = context.plan
        serving = tuple(each for each in plan.attempts if each.target == target)
        self._context = replace(
            context,
            plan=replace(plan, attempts=serving[:1]),
            media=RequestMedia(
                context.gateway.media, request, context.gateway.files, context.computations
            ),
        )

    def _output_left(self) -> int | None:
        """Return what is left of the caller's output limit, in tokens; None if there is no
        limit.
        """
        limit = self._request.output_tokens_max
        return None if limit is None else limit - self._context.meter.output_tokens

    def _has_room(self) -> bool:
        left = self._output_left()
        return left is None or left >= _OUTPUT_TOKENS_MIN

    def _offer(self, request: GenerationRequest, *, is_last: bool) -> dict[str, object]:
        """Return the tools and the tool choice for a later round; a forced call is forced only
        once.

        The last round has only the caller's tools. If the caller has none, the model may call
        nothing.
        """
        choice = request.tool_choice
        if choice is not None and choice.mode in ("required", "named"):
            choice = None
        tools = request.tools
        if is_last:
            server_tools = self._injected.by_name
            tools = tuple(tool for tool in request.tools if tool.name not in server_tools)
            if not tools:
                tools, choice = request.tools, ToolChoice(mode="none")
        return {"tools": tools, "tool_choice": choice}

    def _is_own(self, name: str) -> bool:
        """Return True if the gateway answers calls to a name, which is a server tool's
        or unknown.
        """
        if name in self._injected.by_name:
            return True
        native = self._request.native
        if native is not None and native.tools:
            return False
        return all(tool.name != name for tool in self._request.tools)

    def _name_apart(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Return calls with valid arguments, and with ids that are unique in the conversation."""
        apart: list[ToolCall] = []
        for call in calls:
            id_, number = call.id, 1
            while not id_ or id_ in self._call_ids:
                number += 1
                id_ = f"{call.id or 'call'}-{number}"
            self._call_ids.add(id_)
            # Formats and providers require a JSON object, so invalid arguments are replaced by an
            # empty one.
            is_readable = not isinstance(read_arguments(call.arguments, {}), str)
            apart.append(
                replace(call, id=id_, arguments=call.arguments if is_readable else _UNREADABLE)
            )
        return tuple(apart)


def _require_conversation(work: Work) -> GenerationRequest:
    if not isinstance(work, GenerationRequest):
        raise TypeError("only a conversation has rounds")
    return work
