"""The cases that every codec shares, and how an answer that was read is compared; see `wires`."""

import json
from collections.abc import Iterator, Sequence

from tests.unit.providers.decoding import decoded, folded
from tests.upstream.answers import Answer
from tests.upstream.speakers import Call
from tests.upstream.wires import Wire
from tollgate.core.content import Reasoning, Text, ToolCall
from tollgate.core.response import GenerationResponse

WEATHER = Call(id="call_abc1", name="weather", pieces=('{"city":', '"Paris"}'))
CLOCK = Call(id="call_abc2", name="now", pieces=())
CITY = Call(id="call_abc3", name="weather", pieces=('{"city":"Rome",', '"days":2}'))
ANSWERS = {
    "text": Answer(words=("Hel", "lo, Zoë ", "👋\n")),
    "reasoning": Answer(thought="Let me see.", words=("Well", ".")),
    "tool": Answer(words=("I look.",), calls=(WEATHER,), finish="tool_calls"),
    "tool_no_args": Answer(calls=(CLOCK,), finish="tool_calls"),
    "parallel_tools": Answer(thought="Two.", calls=(WEATHER, CLOCK, CITY), finish="tool_calls"),
    "cache_hit": Answer(words=("Hi",), cached=4),
    "length": Answer(words=("Once upon",), finish="length"),
    "refusal": Answer(words=("I",), finish="content_filter"),
}


def cases_of(wire: Wire) -> list[str]:
    """The cases that a wire has words for."""
    return [
        name
        for name, answer in ANSWERS.items()
        if not (wire.text_only and (answer.thought or answer.calls))
    ]


def read(wire: Wire, chunks: Sequence[bytes]) -> GenerationResponse:
    return folded(decoded(wire.decoder(), wire.frames(chunks)))


def parts_of(response: GenerationResponse) -> Iterator[tuple[str, object]]:
    """Yield kind and content of each part, without data that only goes back to the provider."""
    for part in response.parts:
        match part:
            case Text(text=text):
                yield "text", text
            case Reasoning(text=""):
                pass
            case Reasoning(text=text):
                yield "reasoning", text
            case ToolCall(id=id_, name=name, arguments=arguments):
                yield "call", (id_, name, json.loads(arguments))
            case _:
                raise AssertionError(part)


def expected_parts(answer: Answer) -> Iterator[tuple[str, object]]:
    if answer.thought:
        yield "reasoning", answer.thought
    if answer.words:
        yield "text", "".join(answer.words)
    for call in answer.calls:
        yield "call", (call.id, call.name, json.loads(call.arguments or "{}"))
