"""Whatever a provider sends, in whatever order: a valid stream or an UpstreamError."""

from collections.abc import Sequence
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.decoding import decoded, folded, sse_frames
from tests.upstream import converse_events as converse
from tests.upstream.openai_chunks import DONE, call_delta, chunk, sse, usage
from tollgate.aws.eventstream import EventStreamDecoder
from tollgate.core.errors import UpstreamError
from tollgate.providers.codecs.bedrock.decode import ConverseDecoder
from tollgate.providers.codecs.openai_chat.decode import ChatDecoder
from tollgate.providers.ports.base import Decoder, Frame

names = st.sampled_from([None, "", "add"])
ids = st.sampled_from([None, "", "a", "b"])
pieces_of_calls = st.builds(
    lambda index, id_, name, arguments: call_delta(index, id_=id_, name=name, arguments=arguments),
    st.sampled_from([None, 0, 1]),
    ids,
    names,
    st.sampled_from([None, "", "{}"]),
)
deltas = st.fixed_dictionaries(
    {},
    optional={
        "content": st.sampled_from([None, "", "text", [{"type": "text", "text": "x"}]]),
        "reasoning": st.sampled_from([None, "", "hm"]),
        "refusal": st.sampled_from([None, "", "no"]),
        "tool_calls": st.none() | st.lists(pieces_of_calls, max_size=2),
    },
)
chat_chunks = st.one_of(
    st.builds(
        lambda delta, finish: sse(chunk(delta, finish=finish)),
        deltas,
        st.sampled_from([None, None, "", "stop", "tool_calls", "error", "new"]),
    ),
    st.sampled_from([sse(chunk(usage=usage())), sse(chunk()), DONE, b": hi\n\n"]),
)

blocks = st.integers(min_value=0, max_value=2)
converse_messages = st.one_of(
    st.builds(converse.text_delta, st.sampled_from(["", "text"]), blocks),
    st.builds(lambda block, text: converse.reasoning_delta(block, text=text), blocks, st.just("h")),
    st.builds(
        lambda block, text: converse.reasoning_delta(block, signature=text), blocks, st.just("c2ln")
    ),
    st.builds(converse.tool_start, blocks, st.sampled_from(["a", "b"]), st.just("add")),
    st.builds(converse.tool_delta, blocks, st.sampled_from(["", "{}"])),
    st.builds(converse.block_stop, blocks),
    st.sampled_from([converse.message_start(), converse.message_stop(), converse.metadata()]),
)


def converse_frames(messages: Sequence[bytes]) -> list[Frame]:
    decoder = EventStreamDecoder()
    return [
        Frame(data=message.payload, event=message.event, exception=message.exception)
        for message in decoder.feed(b"".join(messages))
    ]


def holds(decoder: Decoder, frames: Sequence[Frame]) -> None:
    with suppress(UpstreamError):
        assert folded(decoded(decoder, frames)).finish


@given(st.lists(chat_chunks, max_size=8))
def test_any_order_of_chat_chunks(chunks: list[bytes]) -> None:
    holds(ChatDecoder("acme"), sse_frames(chunks))


@given(st.lists(converse_messages, max_size=8))
def test_any_order_of_converse_messages(messages: list[bytes]) -> None:
    holds(ConverseDecoder("acme", signer=None), converse_frames(messages))


@given(st.lists(st.binary(max_size=40), max_size=4))
def test_any_bytes_in_a_frame(payloads: list[bytes]) -> None:
    frames = [Frame(data=payload) for payload in payloads]
    holds(ChatDecoder("acme"), frames)
    for kind in ("messageStart", "contentBlockDelta", "messageStop", "metadata"):
        holds(
            ConverseDecoder("acme", signer=None),
            [Frame(data=payload, event=kind) for payload in payloads],
        )
