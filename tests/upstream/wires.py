"""One answer in the words of every provider format, framed as every transport has it; synthetic.

A wire is a codec with a framing. What is written here is what each must read alike: the cases that
all codecs share are in `tests/unit/providers/test_shared_cases.py`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.upstream import completion_chunks as completions
from tests.upstream import converse_events as converse
from tests.upstream import gemini_chunks as gemini
from tests.upstream import messages_events as messages
from tests.upstream import openai_chunks as chat
from tests.upstream import responses_events as responses
from tests.upstream.answers import (
    Answer,
    in_chat,
    in_completions,
    in_converse,
    in_gemini,
    in_messages,
    in_responses,
)
from tests.upstream.speakers import SECRET_WORDS
from tollgate.core.request import Capability, Modality
from tollgate.providers.ports.base import Codec, Decoder, Frame, Target, UpstreamRefused
from tollgate.providers.ports.dialect import ClaudeCarrier, ClaudeDialect, Dialect, GeminiDialect
from tollgate.providers.ports.formats import FormatName, codec_of
from tollgate.providers.transports.bedrock_runtime import EventStreamFrames
from tollgate.providers.transports.body_frames import FrameDecoder
from tollgate.providers.transports.invoke_frames import InvokeFrames
from tollgate.providers.transports.sagemaker_runtime import PayloadFrames
from tollgate.providers.transports.sse import SseDecoder

_ALL: frozenset[Capability] = frozenset({"tools", "structured_output", "reasoning", "prompt_cache"})
_EVERY_INPUT: frozenset[Modality] = frozenset({"text", "image", "audio", "pdf"})


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A codec behind a framing.

    `write` makes the events of an answer, `silences` say nothing, `unknown` is an event of a kind
    that nobody knows, `garbage` is none, `overloaded` an error in place of the rest. `head` is how
    many of the first events only begin the answer. A wire that is `text_only` has no words for
    thoughts and calls.
    """

    name: str
    codec_name: FormatName
    dialect: Dialect
    write: Callable[[Answer], list[bytes]]
    framing: Callable[[], FrameDecoder]
    pack: Callable[[bytes], bytes]
    silences: Sequence[bytes]
    unknown: bytes
    overloaded: bytes
    rate_limited: UpstreamRefused
    head: int = 1
    text_only: bool = False
    place: Mapping[str, str] = field(default_factory=dict)

    @property
    def codec(self) -> Codec:
        return codec_of(self.codec_name)

    @property
    def target(self) -> Target:
        """An endpoint that can do whatever the format has words for."""
        return Target(
            provider=self.name,
            model="acme/m",
            upstream_model="m-1",
            dialect=self.dialect,
            output_tokens_max=8_192,
            supports=_ALL,
            input=_EVERY_INPUT,
            **self.place,
        )

    def decoder(self) -> Decoder:
        return self.codec.decoder(self.target)

    def body(self, events: Iterable[bytes]) -> bytes:
        """The events as they come over the wire."""
        return b"".join(map(self.pack, events))

    def frames(self, chunks: Iterable[bytes]) -> list[Frame]:
        """The frames in bytes that come in any pieces."""
        framing = self.framing()
        return [*(frame for chunk in chunks for frame in framing.feed(chunk)), *framing.end()]


def _json(payload: object) -> bytes:
    return json.dumps(payload).encode()


def _as_it_is(event: bytes) -> bytes:
    return event


def _refused(status: int, body: object, **headers: str) -> UpstreamRefused:
    return UpstreamRefused(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, _json(body)
    )


def _claude_sse(event: bytes) -> bytes:
    return b"data: " + event + b"\n\n"


def _claude_chunk(event: bytes) -> bytes:
    return messages.invoke_chunk(json.loads(event))


def _payload_part(event: bytes) -> bytes:
    headers = {
        ":event-type": "PayloadPart",
        ":content-type": "application/octet-stream",
        ":message-type": "event",
    }
    return converse.message(headers, event)


_LIMITED = {"error": {"message": SECRET_WORDS, "type": "rate_limit_error", "code": "rate_limit"}}
_CLAUDE_LIMITED = {"type": "error", "error": {"type": "rate_limit_error", "message": SECRET_WORDS}}
_AWS_LIMITED = _refused(
    429,
    {"message": SECRET_WORDS},
    x_amzn_errortype="ThrottlingException:http://internal.example/",
    retry_after="7",
)


def _chat_wire(
    name: str, framing: Callable[[], FrameDecoder], pack: Callable[[bytes], bytes]
) -> Wire:
    return Wire(
        name=name,
        codec_name="openai_chat",
        dialect=Dialect(
            reasoning="effort",
            reasoning_field="reasoning_content",
            efforts=("none", "low", "medium", "high"),
            refuses=(),
            cache_marks=True,
            guided=True,
            native_choices=True,
            developer_role=True,
            fetches_urls=("image",),
        ),
        write=in_chat,
        framing=framing,
        pack=pack,
        silences=[
            chat.KEEP_ALIVE,
            chat.sse(chat.chunk()),
            chat.sse(chat.chunk({"role": "assistant", "content": None, "tool_calls": None})),
        ],
        unknown=chat.sse({"object": "chat.completion.novelty", "novelty": {"text": "x"}}),
        overloaded=chat.sse({"error": {"message": SECRET_WORDS, "type": "overloaded_error"}}),
        rate_limited=_refused(429, _LIMITED, retry_after="7"),
    )


def _claude_wire(
    name: str,
    carrier: ClaudeCarrier,
    framing: Callable[[], FrameDecoder],
    pack: Callable[[bytes], bytes],
    limited: UpstreamRefused,
) -> Wire:
    return Wire(
        name=name,
        codec_name="anthropic",
        dialect=Dialect(
            claude_carrier=carrier,
            claude=ClaudeDialect(thinking_off="absent"),
            reasoning="claude_budget",
            refuses=(),
            fetches_urls=("file", "image") if carrier == "anthropic" else (),
        ),
        write=in_messages,
        framing=framing,
        pack=pack,
        silences=[
            _json(messages.PING),
            _json({"type": "vertex_event", "usage": {"input_tokens": 9, "output_tokens": 1}}),
        ],
        unknown=_json({"type": "content block novelty", "index": 0}),
        overloaded=_json(messages.error("overloaded_error", SECRET_WORDS)),
        rate_limited=limited,
        place={"project": "p-1", "location": "global"} if carrier == "vertex" else {},
    )


def _gemini_wire(name: str, place: Mapping[str, str]) -> Wire:
    exhausted = {"code": 503, "status": "UNAVAILABLE", "message": SECRET_WORDS}
    limited = {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": SECRET_WORDS,
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}],
    }
    return Wire(
        name=name,
        codec_name="gemini",
        dialect=Dialect(
            reasoning="gemini_budget",
            refuses=(),
            gemini=GeminiDialect(schema_beside_tools=True),
            fetches_urls=("file", "image"),
        ),
        write=in_gemini,
        framing=SseDecoder,
        pack=_as_it_is,
        silences=[gemini.sse(gemini.chunk()), gemini.sse({"modelVersion": "gemini-9"})],
        unknown=gemini.sse(gemini.chunk({"novelty": {"text": "x"}})),
        overloaded=gemini.sse({"error": exhausted}),
        rate_limited=_refused(429, [{"error": limited}]),
        head=0,
        place=place,
    )


WIRES = (
    _chat_wire("openai_chat", SseDecoder, _as_it_is),
    _chat_wire("sagemaker", lambda: PayloadFrames("sagemaker"), _payload_part),
    Wire(
        name="openai_responses",
        codec_name="openai_responses",
        dialect=Dialect(
            reasoning="effort",
            efforts=("none", "low", "medium", "high"),
            refuses=(),
            reasoning_summaries=True,
            text_tools=True,
            developer_role=True,
            fetches_urls=("file", "image"),
        ),
        write=in_responses,
        framing=SseDecoder,
        pack=_as_it_is,
        silences=[
            chat.KEEP_ALIVE,
            chat.sse({"type": "keepalive", "sequence_number": 7}, "keepalive"),
            responses.event("in_progress"),
        ],
        unknown=responses.event("web_search_call.searching", item_id="ws_1"),
        overloaded=chat.sse({"type": "error", "code": "slow_down", "message": SECRET_WORDS}),
        rate_limited=_refused(429, _LIMITED, retry_after="7"),
    ),
    _claude_wire(
        "anthropic",
        "anthropic",
        SseDecoder,
        _claude_sse,
        _refused(429, _CLAUDE_LIMITED, retry_after="7"),
    ),
    _claude_wire(
        "anthropic_vertex",
        "vertex",
        SseDecoder,
        _claude_sse,
        _refused(429, [_CLAUDE_LIMITED], retry_after="7"),
    ),
    _claude_wire("bedrock_invoke", "bedrock", InvokeFrames, _claude_chunk, _AWS_LIMITED),
    _gemini_wire("gemini", {}),
    _gemini_wire("gemini_vertex", {"project": "p-1", "location": "global"}),
    Wire(
        name="bedrock",
        codec_name="bedrock",
        dialect=Dialect(reasoning="claude_budget", refuses=(), failed_results=True),
        write=in_converse,
        framing=EventStreamFrames,
        pack=_as_it_is,
        silences=[
            converse.text_delta("", 9),
            converse.event("contentBlockStart", {"contentBlockIndex": 9, "start": {}}),
        ],
        unknown=converse.event("contentBlockNovelty", {"contentBlockIndex": 0}),
        overloaded=converse.exception("serviceUnavailableException", SECRET_WORDS),
        rate_limited=_AWS_LIMITED,
    ),
)

# A prompt is completed: there are no conversations and no tools.
COMPLETIONS = Wire(
    name="openai_completions",
    codec_name="openai_completions",
    dialect=Dialect(refuses=(), suffixes=True, native_choices=True, guided=True),
    write=in_completions,
    framing=SseDecoder,
    pack=_as_it_is,
    silences=[chat.KEEP_ALIVE, chat.sse(completions.chunk("")), chat.sse(completions.chunk())],
    unknown=chat.sse({"object": "text_novelty", "novelty": {"text": "x"}}),
    overloaded=chat.sse({"error": {"message": SECRET_WORDS, "type": "overloaded_error"}}),
    rate_limited=_refused(429, _LIMITED, retry_after="7"),
    head=0,
    text_only=True,
)
EVERY_WIRE = (*WIRES, COMPLETIONS)
