"""Calls whose input is free text, in a stream of chat completions and in a whole answer.

Keeps C10, C31.
"""

from tests.unit.ingress.test_render import deltas, said, whole
from tollgate.core.content import Provenance, ToolCall
from tollgate.core.signers import GEMINI


def test_c31_a_call_with_free_text_has_its_input_as_it_is() -> None:
    events = said(ToolCall(id="c", name="note", arguments="", is_text=True), "a\n", '"b"')
    assert [delta["tool_calls"] for delta in deltas(*events)] == [
        [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "note", "input": ""}}],
        [{"index": 0, "custom": {"input": "a\n"}}],
        [{"index": 0, "custom": {"input": '"b"'}}],
    ]
    (call,) = whole(*events)["choices"][0]["message"]["tool_calls"]
    assert call == {"id": "c", "type": "custom", "custom": {"name": "note", "input": 'a\n"b"'}}


def test_c31_a_call_with_no_text_at_all_has_an_empty_input() -> None:
    events = said(ToolCall(id="c", name="note", arguments="", is_text=True))
    assert len(deltas(*events)) == 1
    (call,) = whole(*events)["choices"][0]["message"]["tool_calls"]
    assert call["custom"]["input"] == ""


def test_c10_a_call_with_free_text_keeps_what_a_provider_attached() -> None:
    signed = Provenance(signer=GEMINI, signature="sig")
    events = said(ToolCall(id="c", name="note", arguments="", is_text=True), "a", provenance=signed)
    attached = {"google": {"thought_signature": "sig"}}
    *_, last = deltas(*events)
    assert last["tool_calls"] == [{"index": 0, "custom": {"input": ""}, "extra_content": attached}]
    (call,) = whole(*events)["choices"][0]["message"]["tool_calls"]
    assert call["extra_content"] == attached
