"""One answer in the words of every provider format; synthetic."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.upstream import completion_chunks as completions
from tests.upstream import converse_events as converse
from tests.upstream import gemini_chunks as gemini
from tests.upstream import messages_events as messages
from tests.upstream import openai_chunks as chat
from tests.upstream import responses_events as responses
from tests.upstream.speakers import Call
from tollgate.core.events import Finish


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a model says; of its prompt of 9 tokens `cached` came from a cache."""

    thought: str = ""
    words: Sequence[str] = ()
    calls: Sequence[Call] = ()
    finish: Finish = "stop"
    cached: int = 0


def in_chat(answer: Answer) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if answer.thought:
        deltas.append({"reasoning_content": answer.thought})
    deltas += [{"content": word} for word in answer.words]
    for index, call in enumerate(answer.calls):
        first = chat.call_delta(index, id_=call.id, name=call.name, arguments="")
        more = [chat.call_delta(index, arguments=piece) for piece in call.pieces]
        deltas += [{"tool_calls": [piece]} for piece in (first, *more)]
    return [
        *(chat.sse(chat.chunk(delta)) for delta in deltas),
        chat.sse(chat.chunk({}, finish=answer.finish)),
        chat.sse(chat.chunk(usage=chat.usage(cached=answer.cached))),
        chat.DONE,
    ]


def in_completions(answer: Answer) -> list[bytes]:
    return [
        *(chat.sse(completions.chunk(word)) for word in answer.words),
        chat.sse(completions.chunk("", finish=answer.finish)),
        chat.sse(completions.chunk(usage=chat.usage(cached=answer.cached))),
        chat.DONE,
    ]


def in_responses(answer: Answer) -> list[bytes]:
    events = [responses.created()]
    output: list[dict[str, Any]] = []
    if answer.thought:
        output.append(responses.reasoning(answer.thought))
        events += [
            responses.added(responses.reasoning()),
            responses.summary_delta(answer.thought),
            responses.done(output[-1]),
        ]
    if answer.words:
        index = len(output)
        output.append(responses.message("".join(answer.words)))
        events.append(responses.added({"type": "message", "content": []}, index))
        events += [responses.text_delta(word, index) for word in answer.words]
        events.append(responses.done(output[-1], index))
    for call in answer.calls:
        index = len(output)
        output.append(responses.call(call.arguments, call.id, call.name))
        events.append(responses.added(responses.call("", call.id, call.name), index))
        events += [responses.arguments_delta(piece, index) for piece in call.pieces]
        events.append(responses.done(output[-1], index))
    counted = responses.usage(cached=answer.cached)
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.finish)
    if reason is None:
        return [*events, responses.completed(*output, usage=counted)]
    cut = responses.response(
        *output, status="incomplete", usage=counted, incomplete_details={"reason": reason}
    )
    return [*events, responses.event("incomplete", response=cut)]


_CLAUDE_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


def in_messages(answer: Answer) -> list[bytes]:
    blocks: list[list[dict[str, Any]]] = []
    if answer.thought:
        blocks.append(
            [
                messages.block(0, type="thinking", thinking="", signature=""),
                messages.delta(0, "thinking_delta", thinking=answer.thought),
                messages.delta(0, "signature_delta", signature="c2ln"),
            ]
        )
    if answer.words:
        index = len(blocks)
        said = [messages.words(word, index) for word in answer.words]
        blocks.append([messages.text(index), *said])
    for call in answer.calls:
        index = len(blocks)
        written = [messages.arguments(piece, index) for piece in call.pieces]
        blocks.append([messages.tool(index, call.id, call.name), *written])
    events = [messages.start(input_tokens=9 - answer.cached, cache_read_input_tokens=answer.cached)]
    for index, block in enumerate(blocks):
        events += [*block, messages.block_stop(index)]
    events += [messages.message_delta(_CLAUDE_REASONS[answer.finish]), messages.STOP]
    return [json.dumps(event).encode() for event in events]


_GEMINI_REASONS = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
}


def in_gemini(answer: Answer) -> list[bytes]:
    parts = [gemini.thought(answer.thought)] if answer.thought else []
    parts += [gemini.text(word) for word in answer.words]
    parts += [
        gemini.call(
            call.name,
            signature=gemini.SIGNATURE,
            id=call.id,
            args=json.loads(call.arguments or "{}"),
        )
        for call in answer.calls
    ]
    cached = {"cachedContentTokenCount": answer.cached} if answer.cached else {}
    last = gemini.chunk(finish=_GEMINI_REASONS[answer.finish]) | gemini.usage(**cached)
    return [*(gemini.sse(gemini.chunk(part)) for part in parts), gemini.sse(last)]


_CONVERSE_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "content_filtered",
}


def in_converse(answer: Answer) -> list[bytes]:
    blocks: list[list[bytes]] = []
    if answer.thought:
        thought = converse.reasoning_delta(0, text=answer.thought)
        blocks.append([thought, converse.reasoning_delta(0, signature="c2ln")])
    if answer.words:
        blocks.append([converse.text_delta(word, len(blocks)) for word in answer.words])
    for call in answer.calls:
        index = len(blocks)
        written = [converse.tool_delta(index, piece) for piece in call.pieces or [""]]
        blocks.append([converse.tool_start(index, call.id, call.name), *written])
    events = [converse.message_start()]
    for index, block in enumerate(blocks):
        events += [*block, converse.block_stop(index)]
    cached = {"cacheReadInputTokens": answer.cached} if answer.cached else {}
    counted = converse.metadata(9 - answer.cached, 3, **cached)
    return [*events, converse.message_stop(_CONVERSE_REASONS[answer.finish]), counted]
