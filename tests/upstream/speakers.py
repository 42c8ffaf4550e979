"""One answer in the words of each provider format, for tests that hold for all of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.upstream import converse_events, openai_chunks
from tests.upstream.server import Script


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call as a model makes it, its arguments in pieces."""

    id: str
    name: str
    pieces: Sequence[str]

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True, kw_only=True)
class Speaker:
    """A scripted provider; `begun`, `calls` and `ended` make the frames of an answer.

    `silence` is a frame that says nothing, `error` one that says too much.
    """

    name: Literal["alpha", "bedrock"]
    headers: Mapping[str, str]
    begun: Callable[[Iterable[str]], list[bytes]]
    calls: Callable[[Iterable[Call]], list[bytes]]
    ended: Callable[[str], list[bytes]]
    silence: bytes
    garbage: bytes
    error: bytes

    @property
    def model(self) -> str:
        return f"{self.name}/one"

    def text(self, words: Iterable[str]) -> list[bytes]:
        """A whole answer in text; its usage says 9 and 3 tokens."""
        return [*self.begun(words), *self.ended("stop")]

    def script(self, chunks: Sequence[bytes], **options: Any) -> Script:
        """These frames as a reply."""
        return Script(headers=self.headers, chunks=chunks, **options)


def _openai_begun(words: Iterable[str]) -> list[bytes]:
    said = [{"role": "assistant", "content": ""}, *({"content": word} for word in words)]
    return [openai_chunks.sse(openai_chunks.chunk(delta)) for delta in said]


def _openai_calls(calls: Iterable[Call]) -> list[bytes]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    for index, call in enumerate(calls):
        first = openai_chunks.call_delta(
            index, id_=call.id, name=call.name, arguments="", type_="function"
        )
        more = [openai_chunks.call_delta(index, arguments=piece) for piece in call.pieces]
        deltas += [{"tool_calls": [piece]} for piece in (first, *more)]
    chunks = [openai_chunks.sse(openai_chunks.chunk(delta)) for delta in deltas]
    return [*chunks, *_openai_ended("tool_calls")]


def _openai_ended(finish: str) -> list[bytes]:
    return [
        openai_chunks.sse(openai_chunks.chunk({}, finish=finish)),
        openai_chunks.sse(openai_chunks.chunk(usage=openai_chunks.usage())),
        openai_chunks.DONE,
    ]


def _converse_begun(words: Iterable[str]) -> list[bytes]:
    return [converse_events.message_start(), *map(converse_events.text_delta, words)]


def _converse_calls(calls: Iterable[Call]) -> list[bytes]:
    frames = [converse_events.message_start()]
    for block, call in enumerate(calls):
        frames.append(converse_events.tool_start(block, call.id, call.name))
        frames += [converse_events.tool_delta(block, piece) for piece in call.pieces]
        frames.append(converse_events.block_stop(block))
    return [*frames, converse_events.message_stop("tool_use"), converse_events.metadata()]


def _converse_ended(finish: str) -> list[bytes]:
    assert finish == "stop"
    return [
        converse_events.block_stop(),
        converse_events.message_stop(),
        converse_events.metadata(),
    ]


SECRET_WORDS = "quota of account 123456789012 at https://internal.example/?key=sk-secret-0123456789"
SECRETS = tuple(word for word in SECRET_WORDS.split() if len(word) > 7)

OPENAI = Speaker(
    name="alpha",
    headers={"content-type": "text/event-stream"},
    begun=_openai_begun,
    calls=_openai_calls,
    ended=_openai_ended,
    silence=openai_chunks.KEEP_ALIVE,
    garbage=b"data: {not json\n\n",
    error=openai_chunks.sse({"error": {"message": SECRET_WORDS, "type": "overloaded_error"}}),
)
BEDROCK = Speaker(
    name="bedrock",
    headers=converse_events.HEADERS,
    begun=_converse_begun,
    calls=_converse_calls,
    ended=_converse_ended,
    silence=converse_events.text_delta(""),
    garbage=b"\xff" * 64,
    error=converse_events.exception("serviceUnavailableException", SECRET_WORDS),
)
SPEAKERS = (OPENAI, BEDROCK)
