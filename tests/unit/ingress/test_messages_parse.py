"""Requests in Anthropic's format become core requests, or an error names the field at fault.

Keeps C2, C11, C13, C15, C17, C80, C94.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cells import cells
from tests.unit.ingress.messages_requests import (
    FORMAT,
    HI,
    HOUR,
    PDF,
    PNG,
    USE,
    WEATHER,
    assistant,
    parsed,
    refusal,
    request,
    result,
    text,
    user,
)
from tollgate.core.content import (
    CacheMark,
    Document,
    FileReference,
    Image,
    InlineMedia,
    MediaUrl,
    Provenance,
    Reasoning,
    Text,
    ToolCall,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import ANTHROPIC_BLOCKS, CLAUDE


def test_a_plain_request() -> None:
    call = parsed()
    assert call.stream is False
    assert call.ignored == ()
    assert call.request == GenerationRequest(
        model="acme/m",
        messages=(UserMessage(content=(Text(text="Hi"),)),),
        output_tokens_max=100,
        size_bytes=call.request.size_bytes,
    )


@pytest.mark.parametrize("as_blocks", [True, False])
def test_c80_the_system_prompt_is_text_or_blocks_that_stay_apart(as_blocks: bool) -> None:
    system = [text("a"), text("b", cache_control=HOUR)] if as_blocks else "a"
    first = request(system=system).messages[0]
    assert first == SystemMessage(
        content=(Text(text="a"), Text(text="b", cache=CacheMark(lifetime="1h")))
        if as_blocks
        else (Text(text="a"),)
    )


def test_c80_a_system_message_keeps_its_place_in_the_conversation() -> None:
    messages = request(HI, {"role": "system", "content": "Be brief."}).messages
    assert messages[1] == SystemMessage(content=(Text(text="Be brief."),))


def test_c11_pictures_and_documents_come_as_data_or_by_address() -> None:
    (message,) = request(
        user(
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/jpeg", "data": PNG},
                "cache_control": {"type": "ephemeral"},
            },
            {"type": "image", "source": {"type": "url", "url": "https://a.example/p.png"}},
            {
                "type": "document",
                "title": "a.pdf",
                "context": "A report.",
                "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
            },
        )
    ).messages
    assert message.content == (
        # The bytes say what they are, whatever the caller claims.
        Image(source=InlineMedia(media_type="image/png", base64=PNG), cache=CacheMark()),
        Image(source=MediaUrl(url="https://a.example/p.png")),
        Text(text="A report."),
        Document(source=InlineMedia(media_type="application/pdf", base64=PDF), filename="a.pdf"),
    )


@pytest.mark.parametrize(
    "source",
    [
        {"type": "text", "media_type": "text/plain", "data": "Words."},
        {"type": "content", "content": "Words."},
    ],
)
def test_c11_a_document_of_text_is_text_below_its_title(source: Any) -> None:
    (message,) = request(
        user({"type": "document", "title": "T", "source": source, "cache_control": HOUR})
    ).messages
    assert message.content == (Text(text="T\n\nWords.", cache=CacheMark(lifetime="1h")),)


def test_c11_a_document_of_blocks_is_its_blocks() -> None:
    source = {"type": "content", "content": [text("a"), text("b")]}
    (message,) = request(
        user({"type": "document", "source": source, "cache_control": HOUR})
    ).messages
    assert message.content == (
        Text(text="a"),
        Text(text="b", cache=CacheMark(lifetime="1h")),
    )


def test_c80_a_passage_is_text_and_its_citations_are_named() -> None:
    call = parsed(
        user(
            {
                "type": "search_result",
                "title": "T",
                "source": "https://a.example",
                "content": [text("Words.")],
                "citations": {"enabled": True},
            }
        )
    )
    (message,) = call.request.messages
    assert message.content == (Text(text="T\nhttps://a.example"), Text(text="Words."))
    assert call.ignored == ("messages[].content[].citations",)


def test_c80_results_are_messages_of_their_own_in_order() -> None:
    use_two = {**USE, "id": "toolu_2"}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    messages = request(
        HI,
        assistant(USE, use_two),
        user(
            result(content="sun", cache_control=HOUR),
            result(tool_use_id="toolu_2", content=[text("no"), image], is_error=True),
            text("Thanks."),
        ),
    ).messages
    assert messages[2:] == (
        ToolMessage(call_id="toolu_1", content=(Text(text="sun", cache=CacheMark(lifetime="1h")),)),
        ToolMessage(
            call_id="toolu_2",
            content=(
                Text(text="no"),
                Image(source=InlineMedia(media_type="image/png", base64=PNG)),
            ),
            failed=True,
        ),
        UserMessage(content=(Text(text="Thanks."),)),
    )


def test_c80_an_answer_comes_back_with_its_thoughts_and_calls_in_order() -> None:
    own = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    messages = request(
        HI,
        assistant(
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "aGlkZGVu"},
            own,
            text(""),
            text("Let me see."),
            {**USE, "cache_control": {"type": "ephemeral"}},
        ),
        user(result()),
    ).messages
    answer = messages[1]
    assert isinstance(answer, AssistantMessage)
    claude = Provenance(signer=CLAUDE)
    assert answer.content == (
        Reasoning(text="Hm.", provenance=replace(claude, signature="c2ln")),
        Reasoning(text="", provenance=replace(claude, data="aGlkZGVu")),
        Reasoning(
            text="",
            provenance=Provenance(
                signer=ANTHROPIC_BLOCKS, data=json.dumps(own, separators=(",", ":"))
            ),
        ),
        Text(text="Let me see."),
        ToolCall(id="toolu_1", name="weather", arguments='{"city":"Paris"}', cache=CacheMark()),
    )
    assert messages[2] == ToolMessage(call_id="toolu_1", content=(Text(text=""),))


def test_c80_a_thought_without_a_signature_is_a_thought() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    answer = request(HI, assistant(thought)).messages[1]
    assert answer.content == (Reasoning(text="Hm."),)


def test_c11_a_mark_on_the_request_marks_its_last_block() -> None:
    messages = request(HI, user(text("a"), text("b")), cache_control=HOUR).messages
    assert messages[1].content == (
        Text(text="a"),
        Text(text="b", cache=CacheMark(lifetime="1h")),
    )


@cells(
    ("fields", "param"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": "Hi"}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [user({"type": "novelty"})]}, "messages[0].content[0].type"),
        ({"messages": [user({"type": "text"})]}, "messages[0].content[0].text"),
        ({"messages": [assistant({"type": "tool_result"})]}, "messages[0].content[0].type"),
        ({"messages": [user(result())]}, "messages[0].content[0].tool_use_id"),
        (
            {"messages": [HI, assistant(USE), user(result(), result())]},
            "messages[2].content[1].tool_use_id",
        ),
        (
            {"messages": [HI, assistant({**USE, "input": "x"})]},
            "messages[1].content[0].input",
        ),
        (
            {"messages": [user({"type": "image", "source": {"type": "gif"}})]},
            "messages[0].content[0].source.type",
        ),
        (
            {
                "messages": [
                    user(
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": PDF},
                        }
                    )
                ]
            },
            "messages[0].content[0].source.data",
        ),
        (
            {
                "messages": [
                    user({"type": "image", "source": {"type": "url", "url": "file:///etc/hosts"}})
                ]
            },
            "messages[0].content[0].source.url",
        ),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"tools": [{"name": "x"}]}, "tools[0].input_schema"),
        ({"tools": [{"type": "code_execution_20250825", "name": "x"}]}, "tools[0].type"),
        ({"tool_choice": {"type": "any"}}, "tool_choice.type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice.name"),
        ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 5}}, "thinking.budget_tokens"),
        ({"temperature": 1.5}, "temperature"),
        ({"stop_sequences": "END"}, "stop_sequences"),
        ({"output_config": {"effort": "huge"}}, "output_config.effort"),
        ({"container": "c"}, "container"),
        ({"mcp_servers": [{"url": "https://a.example"}]}, "mcp_servers"),
        ({"inference_geo": "us"}, "inference_geo"),
        ({"thread": {"type": "create"}}, "thread"),
        # It would be named in a header.
        ({"tools": [{"type": "bash_\U000eaedb", "name": "bash"}]}, "tools[0].type"),
        ({"tools": [{"type": "bash_1\r\nx: y", "name": "bash"}]}, "tools[0].type"),
        ({"tools": [{"type": "bash_" + "1" * 65, "name": "bash"}]}, "tools[0].type"),
    ],
)
def test_c80_a_fault_names_its_field(fields: Any, param: str) -> None:
    refused = refusal(**{"messages": [HI], **fields}) if "messages" not in fields else None
    if refused is None:
        body = {"model": "acme/m", "max_tokens": 100, **fields}
        with pytest.raises(RequestError) as raised:
            FORMAT.parse(json.dumps(body).encode(), {})
        refused = raised.value
    assert (refused.code, refused.param) == (ErrorCode.INVALID_REQUEST, param)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]},
            (
                "tools[0].type must be 'custom', the type of a tool that the caller runs, such as "
                "'bash_20250124', or the type of a server tool, such as 'web_search_20250305', not "
                "'code_execution_20250825'."
            ),
        ),
        (
            {"messages": [HI, {"role": "assistant", "content": [{"type": "image"}]}]},
            (
                "messages[1].content[0].type must be 'text', 'thinking', 'redacted_thinking', "
                "'tool_use' or the block type of a tool that Anthropic ran, not 'image'."
            ),
        ),
    ],
)
def test_c40_c80_an_unknown_type_is_refused_with_those_that_are_known(
    fields: Any, message: str
) -> None:
    body = {"model": "acme/m", "max_tokens": 100, "messages": [HI], **fields}
    with pytest.raises(RequestError) as raised:
        FORMAT.parse(json.dumps(body).encode(), {})
    assert raised.value.message == message


def test_c80_a_file_by_id_is_found_later() -> None:
    image = {"type": "image", "source": {"type": "file", "file_id": "f"}}
    parsed = request(user(image))
    field = "messages[0].content[0].source.file_id"
    assert parsed.messages[0].content == (Image(source=FileReference(id="f", field=field)),)


# What the tool runner of Anthropic's SDK for Node 1.12 sends unless it is told otherwise, with
# `message-threads-2026-08-12` among its betas. At these details it sends all messages instead.
@pytest.mark.parametrize(
    "thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}]
)
def test_c94_a_thread_is_refused_in_the_words_at_which_sdks_go_on_without_one(thread: Any) -> None:
    body = {"model": "acme/m", "max_tokens": 100, "messages": [], "thread": thread}
    with pytest.raises(RequestError) as raised:
        FORMAT.parse(json.dumps(body).encode(), {})
    reply = FORMAT.error(raised.value, "req")
    assert reply.status == 400
    error = json.loads(reply.body)["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", "thread")
    assert "send all messages" in error["message"]
    assert error["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["thread"],
    }
