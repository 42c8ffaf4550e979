"""The rules of turns that Gemini enforces, and what parts are made of."""

from itertools import pairwise

import pytest
from hypothesis import given

from tests.unit.providers.gemini.requests import (
    HISTORY,
    LEVELS,
    PNG,
    assistant,
    call,
    encoded,
    refusal,
    result,
    signed,
    system,
    target,
    turns,
    user,
)
from tollgate.core.content import (
    Audio,
    Document,
    Image,
    InlineMedia,
    MediaUrl,
    Provenance,
    Reasoning,
    Text,
)
from tollgate.core.request import (
    Message,
    SystemMessage,
    UserMessage,
)
from tollgate.core.signers import CLAUDE


def test_q4_turns_of_one_role_stay_apart_and_empty_text_is_sent() -> None:
    assert turns(user("a", ""), user("b"), assistant(Text(text="c"))) == [
        {"role": "user", "parts": [{"text": "a"}, {"text": ""}]},
        {"role": "user", "parts": [{"text": "b"}]},
        {"role": "model", "parts": [{"text": "c"}]},
    ]


def test_q8_q10_leading_instructions_are_the_systems_and_later_ones_keep_their_place() -> None:
    developer = SystemMessage(content=(Text(text="B"),), role="developer")
    body = encoded(system("A"), developer, user("hi"), system("C")).body
    assert body["systemInstruction"] == {"parts": [{"text": "A"}, {"text": "B"}]}
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "user", "parts": [{"text": "<system>\nC\n</system>"}]},
    ]


def test_a_request_needs_more_than_instructions() -> None:
    assert "at least one user message" in refusal(system("A"), assistant())


def test_q13_results_are_one_user_turn_in_the_order_of_the_calls_with_names_and_objects() -> None:
    sent = turns(
        user("?"),
        assistant(call("a", '{"n": 12345678901234567890}'), call("b", "")),
        result("b", "rain", "!"),
        result("a", '{"sun": true}'),
        user("and?"),
    )
    assert sent[1:] == [
        {
            "role": "model",
            "parts": [
                {
                    "functionCall": {
                        "id": "a",
                        "name": "weather",
                        "args": {"n": 12345678901234567890},
                    }
                },
                {"functionCall": {"id": "b", "name": "weather", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "a",
                        "name": "weather",
                        "response": {"result": '{"sun": true}'},
                    }
                },
                {
                    "functionResponse": {
                        "id": "b",
                        "name": "weather",
                        "response": {"result": "rain!"},
                    }
                },
            ],
        },
        {"role": "user", "parts": [{"text": "and?"}]},
    ]


def test_q12_an_id_that_was_made_here_is_not_told_to_gemini() -> None:
    made = "gemini_" + "0" * 24
    sent = turns(user("?"), assistant(call(made)), result(made, "rain"))
    assert sent[1]["parts"] == [{"functionCall": {"name": "weather", "args": {}}}]
    assert "id" not in sent[2]["parts"][0]["functionResponse"]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([assistant(call("a")), user("?")], "no tool result for the call 'a'"),
        ([assistant(call("a"))], "no tool result for the call 'a'"),
        ([user("?"), result("z", "x")], "'z' answers no open call"),
        ([assistant(call("a")), result("a", "x"), result("a", "x")], "'a' answers no open call"),
        ([assistant(call("a"), call("a"))], "two calls have the id 'a'"),
        ([assistant(call("a", "{")), result("a")], "'a' are not JSON"),
        ([assistant(call("a", "[]")), result("a")], "'a' are not a JSON object"),
        ([assistant(call("a", '{"x": NaN}')), result("a")], "'a' are not JSON"),
    ],
)
def test_q3_q14_a_broken_history_is_the_callers_error(messages: list[Message], words: str) -> None:
    assert words in refusal(*messages)


def test_q24_media_of_a_result_follow_it_in_a_turn_of_their_own() -> None:
    sent = turns(
        user("?"), assistant(call("a")), result("a", "See.", Image(source=PNG)), user("So?")
    )
    assert sent[2]["parts"][0]["functionResponse"]["response"] == {"result": "See."}
    assert sent[3] == {
        "role": "user",
        "parts": [
            {"text": "From the result of weather:"},
            {"inlineData": {"mimeType": "image/png", "data": "aW1hZ2U="}},
        ],
    }
    assert sent[4]["parts"] == [{"text": "So?"}]


def test_q34_signatures_go_back_with_the_parts_that_they_came_with() -> None:
    sent = turns(
        user("?"),
        assistant(
            Reasoning(text="Hm.", provenance=signed("one")),
            Reasoning(text="Unsigned."),
            Reasoning(text="Foreign.", provenance=Provenance(signer=CLAUDE, signature="x")),
            Text(text=""),
            Text(text="So."),
            Reasoning(text="", provenance=signed("two")),
            call("a", provenance=signed("three")),
        ),
        result("a", "x"),
    )
    assert sent[1]["parts"] == [
        {"text": "Hm.", "thought": True, "thoughtSignature": "one"},
        {"text": "So."},
        {"text": "", "thoughtSignature": "two"},
        {
            "functionCall": {"id": "a", "name": "weather", "args": {}},
            "thoughtSignature": "three",
        },
    ]


def test_q34_a_lost_signature_is_replaced_on_the_first_call_of_each_step_where_one_is_needed() -> (
    None
):
    messages = (
        user("?"),
        assistant(call("a"), call("b")),
        result("a", "x"),
        result("b", "x"),
        assistant(call("c"), call("d", provenance=signed())),
        result("c", "x"),
        result("d", "x"),
    )
    signatures = [
        part.get("thoughtSignature")
        for turn in turns(*messages, to=target(LEVELS))
        for part in turn["parts"]
        if "functionCall" in part
    ]
    placeholder = "skip_thought_signature_validator"
    assert signatures == [placeholder, None, placeholder, "c2ln"]
    assert placeholder not in str(turns(*messages))


def test_image_in_q23_audio_and_documents_go_inline() -> None:
    wav = InlineMedia(media_type="audio/wav", base64="d2F2")
    pdf = InlineMedia(media_type="application/pdf", base64="cGRm")
    message = UserMessage(
        content=(
            Image(source=PNG, detail="high"),
            Audio(source=wav, format="wav"),
            Document(source=pdf, filename="a.pdf"),
        )
    )
    assert turns(message)[0]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "aW1hZ2U="}},
        {"inlineData": {"mimeType": "audio/wav", "data": "d2F2"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "cGRm"}},
    ]
    assert encoded(message).adapted == ("image_url.detail",)


def test_q22_an_address_is_sent_with_the_type_that_its_name_tells() -> None:
    own = "https://generativelanguage.googleapis.com/v1beta/files/abc"
    message = UserMessage(
        content=(
            Image(source=MediaUrl(url="https://x.example/a.PNG?size=1")),
            Document(source=MediaUrl(url=own)),
        )
    )
    assert turns(message)[0]["parts"] == [
        {"fileData": {"fileUri": "https://x.example/a.PNG?size=1", "mimeType": "image/png"}},
        {"fileData": {"fileUri": own}},
    ]


@pytest.mark.parametrize("url", ["https://x.example/a", "https://x.example/a.tar.gz"])
def test_q22_an_address_that_tells_no_type_is_the_callers_error(url: str) -> None:
    assert "this file" in refusal(UserMessage(content=(Document(source=MediaUrl(url=url)),)))


@given(HISTORY)
def test_q1_every_valid_history_has_results_directly_after_calls(messages: list[Message]) -> None:
    sent = turns(user("start"), *messages)
    for before, after in pairwise([*sent, {"role": "user", "parts": []}]):
        asked = [p["functionCall"]["id"] for p in before["parts"] if "functionCall" in p]
        told = [p["functionResponse"]["id"] for p in after["parts"] if "functionResponse" in p]
        assert asked == told
