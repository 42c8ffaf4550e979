"""Conversations, with the rules of turns that Anthropic enforces.

Keeps C11.
"""

import base64
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.unit.providers.anthropic.requests import (
    NEWER,
    OLDER,
    assistant,
    body,
    call,
    encoded,
    result,
    system,
    target,
    texts,
    user,
)
from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    Image,
    InlineMedia,
    MediaUrl,
    Provenance,
    Reasoning,
    Refusal,
    Text,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import Message, SystemMessage, Tool, ToolMessage, UserMessage
from tollgate.core.signers import ANTHROPIC_BLOCKS, CLAUDE
from tollgate.providers.ports.dialect import Dialect

PNG = InlineMedia(media_type="image/png", base64="AAAA")
PDF = InlineMedia(media_type="application/pdf", base64="BBBB")
NOTE = InlineMedia(media_type="text/plain", base64=base64.b64encode("né".encode()).decode())
LINK = MediaUrl(url="https://a.example/a.png")


def turns(*messages: Message, **fields: Any) -> Any:
    return body(*messages, **fields)["messages"]


def refusal(*messages: Message, **fields: Any) -> str:
    with pytest.raises(RequestError) as raised:
        encoded(*messages, **fields)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert raised.value.param == "messages"
    return raised.value.message


def text(said: str) -> Any:
    return {"type": "text", "text": said}


def tool_result(id_: str, said: str) -> Any:
    return {"type": "tool_result", "tool_use_id": id_, "content": [text(said)]}


def test_text_and_multi_turn() -> None:
    assert turns(user("Hi"), assistant(Text(text="Hello.")), user("Bye")) == [
        {"role": "user", "content": [text("Hi")]},
        {"role": "assistant", "content": [text("Hello.")]},
        {"role": "user", "content": [text("Bye")]},
    ]


def test_q8_q10_leading_system_and_developer_are_hoisted() -> None:
    developer = SystemMessage(content=texts("Two."), role="developer")
    assert body(system("One."), developer, user("Hi"))["system"] == [text("One."), text("Two.")]


def test_q8_later_system_keeps_its_place_as_marked_text() -> None:
    assert turns(user("Hi"), system("Three."), user("Bye")) == [
        {"role": "user", "content": [text("Hi"), text("<system>\nThree.\n</system>"), text("Bye")]}
    ]


def test_q8_later_system_is_a_turn_of_its_own_where_the_model_takes_it() -> None:
    said = turns(user("Hi"), system("Three."), user("Bye"), at=target(NEWER))
    assert [turn["role"] for turn in said] == ["user", "system", "user"]


def test_q9_a_last_assistant_message_is_continued_or_refused() -> None:
    messages = (user("Hi"), assistant(Text(text="He")))
    assert turns(*messages)[-1] == {"role": "assistant", "content": [text("He")]}
    assert "cannot continue an assistant message" in refusal(*messages, at=target(NEWER))


def test_q4_runs_of_users_join_in_order() -> None:
    assert turns(user("a"), user("b", "c")) == [
        {"role": "user", "content": [text("a"), text("b"), text("c")]}
    ]


def test_q1_q2_parallel_results_and_the_text_after_them_are_one_turn() -> None:
    said = turns(
        user("Weather?"),
        assistant(call("a"), call("b")),
        result("b", "rain"),
        result("a", "sun"),
        user("Thanks."),
    )
    assert [turn["role"] for turn in said] == ["user", "assistant", "user"]
    assert said[2]["content"] == [
        tool_result("b", "rain"),
        tool_result("a", "sun"),
        text("Thanks."),
    ]


def test_c80_a_result_says_that_its_tool_failed() -> None:
    failed = ToolMessage(call_id="a", content=texts("no"), failed=True)
    said = turns(user("Weather?"), assistant(call("a")), failed)
    assert said[2]["content"] == [{**tool_result("a", "no"), "is_error": True}]


def test_c11_a_call_keeps_its_cache_mark() -> None:
    marked = replace(call("a"), cache=CacheMark(lifetime="1h"))
    said = turns(user("Weather?"), assistant(marked), result("a", "rain"))
    assert said[1]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


def test_q24_pictures_that_follow_results_join_their_turn() -> None:
    said = turns(
        user("?"),
        assistant(call("a")),
        result("a", "see"),
        UserMessage(content=(Image(source=PNG),)),
    )
    assert [block["type"] for block in said[2]["content"]] == ["tool_result", "image"]


def test_q24_pictures_and_documents_stay_in_results() -> None:
    shown = ToolMessage(call_id="a", content=(Image(source=PNG), Document(source=PDF)))
    said = turns(user("?"), assistant(call("a")), shown)
    inside = said[2]["content"][0]["content"]
    assert [block["type"] for block in inside] == ["image", "document"]


@pytest.mark.parametrize(
    "rest",
    [
        [],
        [user("Never mind.")],
        [system("Be brief."), result("b", "sun")],
        [assistant(Text(text="x"))],
        [result("a", "rain")],
    ],
)
def test_q3_a_call_without_a_result_is_refused_by_its_id(rest: list[Message]) -> None:
    assert "'b'" in refusal(user("?"), assistant(call("a"), call("b")), *rest)


@pytest.mark.parametrize(
    "messages",
    [
        [user("?"), result("zz", "x")],
        [user("?"), assistant(call("a")), result("a", "x"), result("zz", "y")],
        [user("?"), assistant(call("zz")), result("zz", "x"), result("zz", "y")],
    ],
)
def test_q3_a_result_without_a_call_is_refused_by_its_id(messages: list[Message]) -> None:
    assert "'zz'" in refusal(*messages)


def test_two_open_calls_of_one_id_are_refused() -> None:
    assert "'a'" in refusal(user("?"), assistant(call("a"), call("a")), result("a", "x"))


@pytest.mark.parametrize("empty", ["", " ", "\n\t"])
def test_q6_q7_empty_text_is_left_out_wherever_it_is(empty: str) -> None:
    said = body(
        system(empty),
        user("Hi", empty),
        assistant(Text(text=empty), call("a")),
        result("a", empty),
    )
    assert "system" not in said
    assert said["messages"] == [
        {"role": "user", "content": [text("Hi")]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "weather", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
    ]


@pytest.mark.parametrize("messages", [[], [user("")], [system("Be brief.")]])
def test_a_conversation_without_any_turn_is_refused(messages: list[Message]) -> None:
    assert "at least one message" in refusal(*messages)


def test_q11_names_are_told_as_left_out_and_refusals_are_what_was_said() -> None:
    wire = encoded(
        UserMessage(content=texts("Hi"), name="ann"), assistant(Refusal(text="No.")), user("Why?")
    )
    assert wire.adapted == ("messages[].name",)
    assert "name" not in str(wire.body["messages"])
    assert "No." in str(wire.body["messages"])


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        ('{"id": 12345678901234567890123}', {"id": 12345678901234567890123}),
        ('{"a": [1, 1.5, null, true, "ü"]}', {"a": [1, 1.5, None, True, "ü"]}),
    ],
)
def test_q14_arguments_become_an_object_with_every_digit(arguments: str, value: Any) -> None:
    said = turns(user("?"), assistant(call(arguments=arguments)), result("a", "x"))
    assert said[1]["content"][0]["input"] == value


@pytest.mark.parametrize("arguments", ["{", "[]", "1", "null", '{"a": NaN}', "[" * 9000])
def test_q14_arguments_that_are_no_json_object_are_refused_by_the_id(arguments: str) -> None:
    assert "'a'" in refusal(user("?"), assistant(call(arguments=arguments)), result("a", "x"))


def test_an_id_of_another_form_is_replaced_alike_in_call_and_result() -> None:
    said = turns(user("?"), assistant(call("call/é.1")), result("call/é.1", "x"))
    called = said[1]["content"][0]["id"]
    assert called == said[2]["content"][0]["tool_use_id"]
    assert called.replace("_", "").isalnum()
    assert called.isascii()


SIGNED = Reasoning(text="hm", provenance=Provenance(signer=CLAUDE, signature="c2ln"))
HIDDEN = Reasoning(text="", provenance=Provenance(signer=CLAUDE, data="b64"))


def carried(block: dict[str, Any]) -> Reasoning:
    return Reasoning(
        text="", provenance=Provenance(signer=ANTHROPIC_BLOCKS, data=json.dumps(block))
    )


def test_q33_thoughts_go_back_verbatim_and_unsigned_ones_do_not() -> None:
    said = turns(
        user("?"),
        assistant(
            SIGNED,
            HIDDEN,
            Reasoning(text="from elsewhere"),
            carried({"type": "tool_use"}),
            Reasoning(text="", provenance=Provenance(signer=ANTHROPIC_BLOCKS, data="no JSON")),
            Text(text="Sun."),
        ),
        user("Thanks."),
    )
    assert said[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b64"},
        text("Sun."),
    ]


def test_q33_thoughts_stay_where_they_stood() -> None:
    between = (SIGNED, Text(text="x"), HIDDEN, Text(text="y"))
    kept = turns(user("?"), assistant(*between), user("!"))[1]["content"]
    assert [block["type"] for block in kept] == ["thinking", "text", "redacted_thinking", "text"]


def test_what_anthropics_own_tools_did_goes_back_untouched() -> None:
    used = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"a": 1}}
    assert turns(user("?"), assistant(carried(used)), user("!"))[1]["content"] == [used]


def test_pictures_and_documents_by_their_bytes() -> None:
    shown = (Image(source=PNG), Document(source=PDF, filename="a.pdf"), Document(source=NOTE))
    said = turns(UserMessage(content=shown))
    assert said[0]["content"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "BBBB"},
            "title": "a.pdf",
        },
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "né"},
        },
    ]


def test_q22_addresses_go_only_to_a_server_that_fetches_them() -> None:
    linked = UserMessage(content=(Image(source=LINK), Document(source=LINK)))
    source = {"type": "url", "url": "https://a.example/a.png"}
    fetching = target(OLDER.model_copy(update={"fetches_urls": ("file", "image")}))
    said = turns(linked, at=fetching)
    assert [block["source"] for block in said[0]["content"]] == [source, source]
    assert "image_url" in refusal(linked, at=target(Dialect(fetches_urls=("file",))))
    assert "file" in refusal(linked, at=target(Dialect(fetches_urls=("image",))))


@pytest.mark.parametrize(
    ("part", "named"),
    [
        (Image(source=InlineMedia(media_type="image/tiff", base64="AAAA")), "image/tiff"),
        (Document(source=InlineMedia(media_type="application/zip", base64="A")), "application/zip"),
        (Document(source=InlineMedia(media_type="text/plain", base64="/w==")), "UTF-8"),
    ],
)
def test_c11_what_claude_cannot_take_is_refused_by_name(part: Any, named: str) -> None:
    assert named in refusal(UserMessage(content=(part,)))


def test_c11_audio_is_refused_by_name_with_a_code_of_its_own() -> None:
    with pytest.raises(RequestError, match="input_audio") as refused:
        body(UserMessage(content=(Audio(source=PNG, format="wav"),)))
    assert refused.value.code is ErrorCode.AUDIO_NOT_SUPPORTED


def marked(said: str, lifetime: Any = "5m") -> Text:
    return Text(text=said, cache=CacheMark(lifetime=lifetime))


def test_c11_cache_marks_stay_where_they_are() -> None:
    said = body(
        SystemMessage(content=(marked("Long.", "1h"),)),
        UserMessage(content=(Text(text="a"), Image(source=PNG, cache=CacheMark()))),
        assistant(call("a")),
        ToolMessage(call_id="a", content=(marked("x"),)),
        tools=(Tool(name="weather", cache=CacheMark()),),
    )
    five_minutes = {"type": "ephemeral"}
    assert said["tools"][0]["cache_control"] == five_minutes
    assert said["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in said["messages"][0]["content"][0]
    assert said["messages"][0]["content"][1]["cache_control"] == five_minutes
    results = said["messages"][2]["content"][0]
    assert results["cache_control"] == five_minutes
    assert results["content"] == [text("x")]


def test_only_the_last_four_cache_marks_are_kept_and_that_is_told() -> None:
    spoken = UserMessage(content=tuple(marked(str(number)) for number in range(5)))
    tools = (Tool(name="weather", cache=CacheMark()),)
    wire = encoded(spoken, tools=tools)
    said: Any = wire.body
    kept = ["cache_control" in block for block in said["messages"][0]["content"]]
    assert kept == [False, True, True, True, True]
    assert "cache_control" not in said["tools"][0]
    assert wire.adapted == ("cache_control",)


WORDS = st.sampled_from(["", " ", "one", "two"])
HISTORY = st.lists(
    st.one_of(
        st.builds(lambda said: [system(said)], WORDS),
        st.builds(lambda first, second: [user(first, second)], WORDS, WORDS),
        st.builds(lambda said: [assistant(Text(text=said))], WORDS),
        st.builds(lambda said: [assistant(Text(text=said), SIGNED, HIDDEN)], WORDS),
        st.builds(
            lambda said, got: [
                assistant(Text(text=said), call("a"), call("b")),
                result("b", got),
                result("a", got),
            ],
            WORDS,
            WORDS,
        ),
    ),
    max_size=8,
).map(lambda groups: [message for group in groups for message in group])


@given(HISTORY)
def test_q1_q6_every_valid_history_has_full_turns_and_results_right_after_calls(
    messages: list[Message],
) -> None:
    said = turns(user("start"), *messages)
    assert all(turn["content"] for turn in said)
    spoken = [block["text"] for turn in said for block in turn["content"] if "text" in block]
    assert all(words.strip() for words in spoken)
    for before, after in pairwise(said):
        called = [block["id"] for block in before["content"] if block["type"] == "tool_use"]
        answered = [
            block["tool_use_id"] for block in after["content"] if block["type"] == "tool_result"
        ]
        assert sorted(called) == sorted(answered)
