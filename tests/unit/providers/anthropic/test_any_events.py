"""Messages streamed in any order and cut anywhere; synthetic.

Keeps C37.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.anthropic.test_decode import Event, answered, parts_of
from tests.unit.providers.decoding import decoded, pieces, sse_frames
from tests.upstream import messages_events as sent
from tollgate.core.content import ToolCall
from tollgate.core.errors import UpstreamError
from tollgate.providers.codecs.anthropic.decode import MessagesDecoder


@given(st.lists(st.integers(min_value=0), max_size=12))
def test_c37_where_the_bytes_are_cut_changes_nothing(cuts: list[int]) -> None:
    events = sent.answer(
        sent.block(0, type="thinking", thinking="", signature=""),
        sent.delta(0, "thinking_delta", thinking="é\u2028"),
        sent.delta(0, "signature_delta", signature="s"),
        sent.block_stop(),
        sent.tool(1), sent.arguments('{"a": "\U0001f600"}', 1), sent.block_stop(1),
        reason="tool_use",
    )  # fmt: skip
    body = b"".join(sent.sse(event) for event in events)
    whole = decoded(MessagesDecoder("acme"), sse_frames([body]))
    assert decoded(MessagesDecoder("acme"), sse_frames(pieces(body, cuts))) == whole


contents = st.sampled_from(["", "x", "{}"])
indexes = st.integers(min_value=0, max_value=2)
any_event = st.one_of(
    st.builds(sent.text, indexes),
    st.builds(sent.tool, indexes),
    st.builds(lambda i: sent.block(i, type="thinking", thinking="", signature=""), indexes),
    st.builds(lambda i: sent.block(i, type="server_tool_use", id="s", name="n", input={}), indexes),
    st.builds(sent.words, contents, indexes),
    st.builds(sent.arguments, contents, indexes),
    st.builds(lambda i, text: sent.delta(i, "thinking_delta", thinking=text), indexes, contents),
    st.builds(sent.block_stop, indexes),
    st.builds(sent.message_delta, st.sampled_from([None, "end_turn", "tool_use"])),
    st.sampled_from([sent.start(), sent.STOP, sent.PING, sent.error("api_error")]),
)


@given(st.lists(any_event, max_size=10), st.booleans())
def test_any_order_of_events_is_a_valid_stream_or_an_error(events: list[Event], led: bool) -> None:
    try:
        response = answered(*([sent.start()] if led else []), *events)
    except UpstreamError:
        return
    assert response.finish


@given(st.lists(st.lists(contents, max_size=3), min_size=1, max_size=3), st.randoms())
def test_any_interleaving_of_calls_gives_the_same_calls(
    blocks: list[list[str]], chance: Any
) -> None:
    left = [
        [sent.tool(i, f"t{i}"), *(sent.arguments(piece, i) for piece in block), sent.block_stop(i)]
        for i, block in enumerate(blocks)
    ]
    mixed: list[Event] = []
    while any(left):
        mixed.append(chance.choice([block for block in left if block]).pop(0))
    said = parts_of(*mixed, reason="tool_use")
    told = {part.id: part.arguments for part in said if isinstance(part, ToolCall)}
    assert told == {f"t{i}": "".join(block) or "{}" for i, block in enumerate(blocks)}
