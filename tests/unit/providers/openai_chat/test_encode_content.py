"""Media, cache marks and earlier thoughts in chat completions, in every dialect.

Keeps C11, C71.
"""

from typing import Any

import pytest

from tests.unit.providers.requests import PDF, PNG, WAV
from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    Image,
    MediaUrl,
    Provenance,
    Reasoning,
    Text,
    ToolCall,
)
from tollgate.core.errors import RequestError
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    Tool,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import CLAUDE, GEMINI, OPENAI
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import codec_of

PNG_URL = "data:image/png;base64,iVBORw0KGgo="


def body(*messages: Message, tools: tuple[Tool, ...] = (), **dialect: Any) -> Any:
    target = Target(provider="acme", model="acme/m", upstream_model="m", dialect=Dialect(**dialect))
    request = GenerationRequest(model="acme/m", messages=messages, tools=tools)
    return codec_of("openai_chat").encode(request, target).body


def sent(*messages: Message, **dialect: Any) -> Any:
    return body(*messages, **dialect)["messages"]


def shown(*parts: Any, **dialect: Any) -> Any:
    return sent(UserMessage(content=parts), **dialect)[0]["content"]


def test_c11_q22_image_in_as_bytes_or_url_with_its_detail() -> None:
    remote = MediaUrl(url="https://example.org/a.png")
    assert shown(Text(text="?"), Image(source=PNG, detail="low"), Image(source=remote)) == [
        {"type": "text", "text": "?"},
        {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]


def test_c11_audio_keeps_its_format() -> None:
    assert shown(Audio(source=WAV, format="wav")) == [
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    ]


@pytest.mark.parametrize(("name", "expected"), [("a.pdf", "a.pdf"), (None, "document.pdf")])
def test_c11_q23_a_file_is_a_data_url_with_a_name(name: str | None, expected: str) -> None:
    assert shown(Document(source=PDF, filename=name)) == [
        {
            "type": "file",
            "file": {"filename": expected, "file_data": "data:application/pdf;base64,JVBERi0="},
        }
    ]


def test_c71_a_file_behind_a_url_is_refused_by_name() -> None:
    remote = Document(source=MediaUrl(url="https://example.org/a.pdf"))
    with pytest.raises(RequestError) as raised:
        shown(remote)
    assert raised.value.param == "messages"
    assert "example.org" not in raised.value.message


def test_c71_a_server_that_fetches_files_gets_the_url_in_the_field_of_the_data() -> None:
    remote = Document(source=MediaUrl(url="https://example.org/a.pdf"), filename="a.pdf")
    file = {"filename": "a.pdf", "file_data": "https://example.org/a.pdf"}
    assert shown(remote, fetches_urls=("file",)) == [{"type": "file", "file": file}]


def test_c11_mistral_takes_documents_by_url_and_as_data_urls() -> None:
    mistral: dict[str, Any] = {"document_part": "document_url", "fetches_urls": ("file",)}
    remote = Document(source=MediaUrl(url="https://example.org/a.pdf"))
    assert shown(remote, **mistral) == [
        {"type": "document_url", "document_url": "https://example.org/a.pdf"}
    ]
    assert shown(Document(source=PDF, filename="a.pdf"), **mistral) == [
        {
            "type": "document_url",
            "document_url": "data:application/pdf;base64,JVBERi0=",
            "document_name": "a.pdf",
        }
    ]


def test_q24_media_of_tool_results_follow_the_run_of_results() -> None:
    calls = (ToolCall(id="a", name="see", arguments=""), ToolCall(id="b", name="see", arguments=""))
    messages = sent(
        AssistantMessage(content=calls),
        ToolMessage(call_id="a", content=(Text(text="one"), Image(source=PNG))),
        ToolMessage(call_id="b", content=(Document(source=PDF),)),
        UserMessage(content=(Text(text="So?"),)),
    )
    assert [(m["role"], m.get("content")) for m in messages[1:3]] == [
        ("tool", "one"),
        ("tool", "(attached below)"),
    ]
    assert [part["type"] for part in messages[3]["content"]] == ["image_url", "file"]
    assert messages[4] == {"role": "user", "content": "So?"}


def test_q24_media_of_the_last_results_are_shown_too() -> None:
    messages = sent(
        AssistantMessage(content=(ToolCall(id="a", name="see", arguments=""),)),
        ToolMessage(call_id="a", content=(Image(source=PNG),)),
    )
    assert [message["role"] for message in messages] == ["assistant", "tool", "user"]


def test_c11_cache_marks_reach_servers_that_know_them() -> None:
    marked = (Text(text="a", cache=CacheMark()), Text(text="b", cache=CacheMark(lifetime="1h")))
    assert shown(*marked, cache_marks=True) == [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    ]
    assert shown(marked[0]) == "a"


def test_c11_a_marked_tool_reaches_servers_that_know_marks() -> None:
    tool = Tool(name="now", cache=CacheMark())
    hi = UserMessage(content=(Text(text="Hi"),))
    assert body(hi, tools=(tool,), cache_marks=True)["tools"][0]["cache_control"] == {
        "type": "ephemeral"
    }
    assert "cache_control" not in body(hi, tools=(tool,))["tools"][0]
    hour = Tool(name="now", cache=CacheMark(lifetime="1h"))
    assert body(hi, tools=(hour,), cache_marks=True)["tools"][0]["cache_control"] == {
        "type": "ephemeral",
        "ttl": "1h",
    }


def test_c11_a_mark_on_what_the_model_said_reaches_servers_that_know_marks() -> None:
    said = AssistantMessage(
        content=(
            Text(text=""),
            Text(text="Hello.", cache=CacheMark()),
            ToolCall(id="a", name="now", arguments="{}"),
        )
    )
    results = ToolMessage(call_id="a", content=(Text(text="noon"),))
    history = (UserMessage(content=(Text(text="Hi"),)), said, results)
    shown = body(*history, cache_marks=True)["messages"][1]["content"]
    assert shown == [{"type": "text", "text": "Hello.", "cache_control": {"type": "ephemeral"}}]
    assert body(*history)["messages"][1]["content"] == "Hello."


def test_q11_names_do_not_reach_servers_that_refuse_them() -> None:
    named = UserMessage(content=(Text(text="Hi"),), name="me")
    assert sent(named)[0]["name"] == "me"
    assert "name" not in sent(named, message_names=False)[0]


THOUGHT = AssistantMessage(content=(Reasoning(text="Hm."), Text(text="So.")))


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (None, {"content": "So."}),
        ("reasoning", {"content": "So.", "reasoning": "Hm."}),
        ("reasoning_content", {"content": "So.", "reasoning_content": "Hm."}),
        ("reasoning_details", {"content": "So.", "reasoning": "Hm."}),
        ("think_tags", {"content": "<think>\nHm.\n</think>\n\nSo."}),
        (
            "thinking_parts",
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                    {"type": "text", "text": "So."},
                ]
            },
        ),
    ],
)
def test_q35_thoughts_go_back_where_the_dialect_wants_them(field: Any, expected: Any) -> None:
    assert sent(THOUGHT, reasoning_field=field)[0] == {"role": "assistant", **expected}


@pytest.mark.parametrize("field", ["think_tags", "thinking_parts", "reasoning_details"])
def test_q35_where_nothing_was_thought_nothing_is_added(field: Any) -> None:
    said = AssistantMessage(content=(Text(text="So."),))
    assert sent(said, reasoning_field=field)[0] == {"role": "assistant", "content": "So."}


def test_q33_signed_reasoning_goes_back_verbatim_and_to_its_signer_only() -> None:
    signed = {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "index": 0}
    ours = Reasoning(text="Hm.", provenance=Provenance(signer=CLAUDE, signature="c2ln"))
    theirs = Reasoning(text="", provenance=Provenance(signer=OPENAI, data="gAAA"))
    message = AssistantMessage(content=(ours, theirs, Text(text="So.")))
    dialect = {"reasoning_field": "reasoning_details"}
    [own] = sent(message, **dialect, signer=CLAUDE)
    assert own["reasoning_details"] == [signed | {"format": CLAUDE}]
    [routed] = sent(message, **dialect)
    assert [each["format"] for each in routed["reasoning_details"]] == [CLAUDE, OPENAI]


def test_q34_a_signed_call_goes_back_with_its_signature_to_its_signer_only() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    signed = Provenance(signer=GEMINI, signature="c2ln")
    said = AssistantMessage(
        content=(ToolCall(id="a", name="f", arguments="{}", provenance=signed),)
    )
    [[google], [other]] = (sent(said, signer=signer)[0]["tool_calls"] for signer in (GEMINI, None))
    assert google["extra_content"] == extra
    assert "extra_content" not in other


def test_q9_a_turn_that_the_model_is_to_continue_is_not_trimmed() -> None:
    user = UserMessage(content=(Text(text="Hi"),))
    said = AssistantMessage(content=(Text(text="Well,"),))
    assert sent(user, said)[-1] == {"role": "assistant", "content": "Well,"}
