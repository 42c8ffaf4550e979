"""Reasoning and signatures in pieces of a stream, as clients keep them and send them back."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.chat_stream import MARK, frames
from tests.unit.ingress.requests import HELLO, understood
from tests.unit.ingress.samples import renderer
from tollgate.core.content import Provenance, Reasoning, ToolCall
from tollgate.core.events import PartDelta, PartEnd, PartStart
from tollgate.core.signers import CLAUDE, GEMINI

SIGNED = Provenance(signer=GEMINI, signature="t")


def pieces(begun: Provenance, ended: Provenance) -> list[dict[str, Any]]:
    """The entries of `reasoning_details`, frame by frame, of a part without text."""
    writer = renderer()
    part = Reasoning(text="", provenance=begun)
    stream = writer.feed(PartStart(index=0, part=part))
    stream += writer.feed(PartEnd(index=0, provenance=ended))
    return [
        piece
        for frame in frames(stream + MARK)
        for piece in frame["choices"][0]["delta"].get("reasoning_details", ())
    ]


@pytest.mark.parametrize(
    ("begun", "proof"),
    [
        (Provenance(signer=CLAUDE), {"signature": "sig"}),
        (Provenance(signer=CLAUDE, data="x"), {"data": "x"}),
        (Provenance(signer=GEMINI), {}),
    ],
)
def test_c10_the_last_piece_of_a_detail_names_its_signer(
    begun: Provenance, proof: dict[str, str]
) -> None:
    # pydantic-ai keeps the `format` of the last piece, OpenAI's SDK for Python joins all of them.
    begin, end = pieces(begun, replace(begun, **proof))
    assert "format" not in begin
    assert end.pop("type") == begin["type"]
    assert end == {"index": 0, "format": begun.signer, **proof}


def test_c10_an_encrypted_detail_has_data_in_each_piece() -> None:
    hidden = Provenance(signer=CLAUDE, data="x")
    # The typed client of OpenRouter refuses one without.
    assert [(piece["type"], piece["data"]) for piece in pieces(hidden, hidden)] == [
        ("reasoning.encrypted", ""),
        ("reasoning.encrypted", "x"),
    ]


@pytest.mark.parametrize(
    "remnant",
    [
        {"type": "reasoning.text", "index": 0, "format": CLAUDE, "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "format": CLAUDE, "data": "x"},
    ],
)
def test_c10_the_last_piece_of_a_stream_alone_is_no_proof(remnant: dict[str, Any]) -> None:
    # OpenAI's SDK for Node keeps the last piece of a field that it does not know.
    said = {"role": "assistant", "content": "hi", "reasoning": "so", "reasoning_details": [remnant]}
    first, _ = understood(messages=[*HELLO, said]).request.messages[1].content
    assert first == Reasoning(text="so")


def test_c10_a_detail_whose_unsigned_neighbours_were_left_out_is_kept() -> None:
    hidden = {"type": "reasoning.encrypted", "index": 1, "format": GEMINI, "data": "x"}
    said = {"role": "assistant", "content": "hi", "reasoning": "so", "reasoning_details": [hidden]}
    first, _ = understood(messages=[*HELLO, said]).request.messages[1].content
    assert first == Reasoning(text="", provenance=Provenance(signer=GEMINI, data="x"))


@pytest.mark.parametrize("begun", [SIGNED, None])
def test_c10_a_call_shows_its_signature_once_and_as_early_as_it_is_known(
    begun: Provenance | None,
) -> None:
    # The AI SDK reads it where the call has its name; Google's own layer has it there.
    writer = renderer()
    call = ToolCall(id="c", name="f", arguments="", provenance=begun)
    stream = writer.feed(PartStart(index=0, part=call))
    stream += writer.feed(PartDelta(index=0, text='{"a":1}'))
    stream += writer.feed(PartEnd(index=0, provenance=SIGNED))
    shown = [
        "extra_content" in piece
        for frame in frames(stream + MARK)
        for piece in frame["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert shown == ([True, False] if begun else [False, False, True])
