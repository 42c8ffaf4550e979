"""Requests in OpenAI's Responses format, parsed into the one request of the middle.

Keeps C80.
"""

import json
from base64 import b64encode
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.cells import cells
from tests.clocks import FixedClock
from tests.references import published_schema
from tests.unit.ingress import media_samples
from tests.unit.ingress.media_samples import b64
from tollgate.core.content import (
    Document,
    Image,
    InlineMedia,
    MediaUrl,
    Provenance,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
)
from tollgate.core.errors import RequestError
from tollgate.core.ids import IdSource
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    JsonOutput,
    NativeOptions,
    ReasoningOptions,
    SchemaOutput,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import OPENAI
from tollgate.ingress.base import NO_HEADERS, ParsedCall
from tollgate.ingress.responses import Responses

PNG, PDF = b64(media_samples.PNG), b64(media_samples.PDF)
FORMAT = Responses(IdSource(FixedClock(), entropy=lambda size: bytes(range(size))))
NOW = {"type": "function", "name": "now", "parameters": {"type": "object"}, "strict": False}
SPAWN = {"type": "function", "name": "spawn", "parameters": {}, "strict": False}
AGENTS = {"type": "namespace", "name": "agents", "description": "Agents.", "tools": [SPAWN]}
CALL = {"type": "function_call", "call_id": "call_1", "name": "now", "arguments": "{}"}


def parsed(headers: dict[str, str] | None = None, **fields: Any) -> ParsedCall:
    body = {"model": "acme/large", "input": "Hi", **fields}
    return FORMAT.parse(json.dumps(body).encode(), headers or NO_HEADERS)


def asked(**fields: Any) -> GenerationRequest:
    return parsed(**fields).request


def at_fault(**fields: Any) -> str | None:
    with pytest.raises(RequestError) as refused:
        parsed(**fields)
    assert refused.value.param is not None
    assert refused.value.param in refused.value.message
    return refused.value.param


def messages(*items: dict[str, Any]) -> tuple[Any, ...]:
    return asked(input=list(items)).messages


def test_c80_a_string_is_one_message_of_the_user_and_instructions_come_first() -> None:
    assert asked(instructions="Be brief.").messages == (
        SystemMessage(role="developer", content=(Text(text="Be brief."),)),
        UserMessage(content=(Text(text="Hi"),)),
    )


def test_c80_messages_need_no_type_and_may_have_every_role() -> None:
    assert messages(
        {"role": "system", "content": "S"},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "D"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "U"}]},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "A", "annotations": [], "logprobs": []},
                {"type": "refusal", "refusal": "No."},
            ],
        },
    ) == (
        SystemMessage(role="system", content=(Text(text="S"),)),
        SystemMessage(role="developer", content=(Text(text="D"),)),
        UserMessage(content=(Text(text="U"),)),
        AssistantMessage(content=(Text(text="A"), Refusal(text="No."))),
    )


def test_c80_media_may_be_addresses_or_data() -> None:
    (message,) = messages(
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": "https://a.example/p", "detail": "original"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                {"type": "input_file", "filename": "a.pdf", "file_data": PDF},
                {"type": "input_file", "file_url": "https://a.example/f"},
            ],
        }
    )
    assert message.content == (
        Image(source=MediaUrl(url="https://a.example/p"), detail="high"),
        Image(source=InlineMedia(media_type="image/png", base64=PNG)),
        Document(source=InlineMedia(media_type="application/pdf", base64=PDF), filename="a.pdf"),
        Document(source=MediaUrl(url="https://a.example/f")),
    )


def test_c80_items_of_one_answer_are_one_message_and_outputs_may_have_media() -> None:
    assert messages(
        {"role": "assistant", "content": "Well."},
        CALL,
        {"type": "custom_tool_call", "call_id": "call_2", "name": "patch", "input": "x"},
        {"type": "function_call_output", "call_id": "call_1", "output": "noon"},
        {
            "type": "custom_tool_call_output",
            "call_id": "call_2",
            "output": [
                {"type": "input_text", "text": "Done"},
                {"type": "input_image", "image_url": "https://a.example/p"},
            ],
        },
    ) == (
        AssistantMessage(
            content=(
                Text(text="Well."),
                ToolCall(id="call_1", name="now", arguments="{}"),
                ToolCall(id="call_2", name="patch", arguments="x", is_text=True),
            )
        ),
        ToolMessage(call_id="call_1", content=(Text(text="noon"),)),
        ToolMessage(
            call_id="call_2",
            content=(Text(text="Done"), Image(source=MediaUrl(url="https://a.example/p"))),
        ),
    )


def test_c80_openais_reasoning_comes_back_as_its_codec_wants_it() -> None:
    summary = [{"type": "summary_text", "text": "Hm."}]
    item = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "gAAA"}
    own = Provenance(signer=OPENAI, id="rs_1")
    (message,) = messages(item)
    assert message.content == (
        Reasoning(text="Hm.", provenance=Provenance(signer=OPENAI, id="rs_1", is_summary=True)),
        Reasoning(text="", provenance=Provenance(signer=own.signer, id=own.id, data="gAAA")),
    )
    (without_id,) = messages({**item, "id": None})
    assert without_id.content == (
        Reasoning(text="Hm.", provenance=Provenance(signer=OPENAI, data="gAAA", is_summary=True)),
    )


def test_c80_reasoning_that_nobody_signed_or_a_client_changed_is_text() -> None:
    content = [{"type": "reasoning_text", "text": "Hm."}]
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "content": content}
    deep = b'{"provenance":{"signer":"x"},"more":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    forged = f"tollgate1.{b64encode(deep).decode()}"
    for changed in (
        item,
        {**item, "encrypted_content": "tollgate1.!"},
        {**item, "encrypted_content": forged},
    ):
        (message,) = messages(changed)
        assert message.content == (Reasoning(text="Hm."),)


def test_c80_options_have_their_places() -> None:
    call = parsed(
        headers={"session-id": "s-1"},
        max_output_tokens=7,
        temperature=0.5,
        top_p=0.9,
        top_logprobs=2,
        metadata={"team": "a"},
        prompt_cache_key="k",
        service_tier="flex",
        safety_identifier="u",
        include=[
            "reasoning.encrypted_content",
            "web_search_call.action.sources",
            "web_search_call.results",
        ],
        store=True,
        client_metadata={"a": "b"},
        stream=True,
    )
    request = call.request
    assert request.output_tokens_max == 7
    assert (request.sampling.temperature, request.sampling.top_p) == (0.5, 0.9)
    assert (request.sampling.logprobs, request.sampling.top_logprobs) == (True, 2)
    assert (request.metadata, request.prompt_cache_key) == ({"team": "a"}, "k")
    assert (request.service_tier, request.user) == ("flex", "u")
    assert request.preferences.session_id == "s-1"
    assert call.stream
    assert call.ignored == ("store", "include:web_search_call.results")


def test_c80_the_form_of_the_text_and_what_only_openai_knows() -> None:
    assert asked(text={"format": {"type": "json_object"}}).output_format == JsonOutput()
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    request = asked(
        text={"format": schema, "verbosity": "low"},
        reasoning={"effort": "high", "summary": "detailed"},
        truncation="auto",
    )
    assert request.output_format == SchemaOutput(name="n", schema={"type": "object"}, strict=True)
    assert request.reasoning == ReasoningOptions(effort="high")
    assert request.native == NativeOptions(
        wire_format="openai_responses",
        fields={"text.verbosity": "low", "reasoning.summary": "detailed", "truncation": "auto"},
    )


def test_c80_a_usual_summary_is_no_option_of_its_own() -> None:
    request = asked(reasoning={"effort": "low", "summary": "auto"}, truncation="disabled")
    assert request.native is None


@cells(
    ("fields", "param"),
    [
        ({"input": 5}, "input"),
        ({"input": []}, "input"),
        ({"input": [{"type": "web_search_call", "id": "ws_1"}]}, "input"),
        (
            {"input": [{"type": "compaction", "encrypted_content": "x"}]},
            "input[0].encrypted_content",
        ),
        ({"input": [{"role": "user", "content": "x"}, {"type": "compaction_trigger"}]}, "input[1]"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        (
            {"input": [{"role": "user", "content": [{"type": "video"}]}]},
            "input[0].content[0].type",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "refusal", "refusal": "x"}]}]},
            "input[0].content[0].type",
        ),
        (
            {
                "input": [
                    {
                        "role": "user",
                        "content": [{"type": "input_image", "file_id": "f", "image_url": "x"}],
                    }
                ]
            },
            "input[0].content[0]",
        ),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file"}]}]},
            "input[0].content[0]",
        ),
        (
            {"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]},
            "input[0].call_id",
        ),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
        ({"input": [{"id": "msg_1"}]}, "input[0]"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt"),
        ({"background": "yes"}, "background"),
        ({"tools": [{"type": "file_search", "vector_store_ids": []}]}, "tools[0].type"),
        ({"tools": [{"type": "mcp", "server_url": "https://a.example"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [NOW], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"tools": [NOW], "tool_choice": {"type": "function", "name": "x"}}, "tool_choice.name"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [{"type": "tool_search"}], "tool_choice": "required"}, "tool_choice"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"reasoning": {"effort": "extreme"}}, "reasoning.effort"),
        ({"temperature": 3}, "temperature"),
    ],
)
def test_c80_a_refusal_names_the_field_at_fault(fields: dict[str, Any], param: str) -> None:
    assert at_fault(**fields) == param


@pytest.mark.parametrize(
    ("field", "instead"),
    [
        ("previous_response_id", "--response-days"),
        ("conversation", "send `previous_response_id`"),
    ],
)
def test_c80_what_needs_storage_is_refused_with_what_to_do_instead(
    field: str, instead: str
) -> None:
    with pytest.raises(RequestError, match=instead):
        parsed(**{field: "resp_1"})


def test_c80_a_reference_to_a_thought_is_left_out_and_named() -> None:
    call = parsed(input=[{"type": "item_reference", "id": "rs_1"}, CALL])
    assert len(call.request.messages) == 1
    assert call.ignored == ("input[]:item_reference",)


def test_c80_a_call_has_one_output() -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "noon"}
    assert at_fault(input=[CALL, output, output]) == "input[2].call_id"


def test_c80_what_is_taken_is_what_openai_publishes() -> None:
    body = {
        "model": "m",
        "input": [{"role": "user", "content": "Hi"}, CALL],
        "tools": [NOW, AGENTS, {"type": "custom", "name": "patch"}],
        "tool_choice": "auto",
        "text": {"verbosity": "low"},
    }
    Draft202012Validator(published_schema("openai.responses.request")).validate(body)
    FORMAT.parse(json.dumps(body).encode())
