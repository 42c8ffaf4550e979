"""Requests for the Responses API, which keeps nothing.

Keeps C11, C12, C13, C15, C16, C17.
"""

from typing import Any

import pytest

from tests.unit.providers.requests import PDF, PNG, WAV
from tollgate.core.content import (
    Audio,
    Document,
    Image,
    MediaUrl,
    Provenance,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    JsonOutput,
    Message,
    NativeOptions,
    ReasoningOptions,
    Sampling,
    SchemaOutput,
    SystemMessage,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import CLAUDE, OPENAI
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import codec_of
from tollgate.providers.shared.emulation import NOT_WRAPPED, Wrapping

HI = UserMessage(content=(Text(text="Hi"),))
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def encoded(
    *messages: Message,
    supports: tuple[Any, ...] = (),
    dialect: dict[str, Any] | None = None,
    **fields: Any,
) -> WireRequest:
    target = Target(
        provider="acme",
        model="acme/m",
        upstream_model="m-1",
        dialect=Dialect(**(dialect or {})),
        supports=frozenset(supports),
        output_tokens_max=4096,
    )
    request = GenerationRequest(model="acme/m", messages=messages or (HI,), **fields)
    return codec_of("openai_responses").encode(request, target)


def items(*messages: Message) -> Any:
    return encoded(*messages).body["input"]


def test_a_plain_request_is_streamed_and_not_stored() -> None:
    wire = encoded()
    assert wire.path == "/responses"
    assert wire.body == {
        "model": "m-1",
        "input": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "store": False,
    }
    assert (wire.adapted, wire.wrapping) == ((), NOT_WRAPPED)


def test_q39_tools_and_effort_go_together() -> None:
    body = encoded(
        supports=("reasoning",),
        tools=(Tool(name="now"),),
        reasoning=ReasoningOptions(effort="high"),
    ).body
    assert body["reasoning"] == {"effort": "high"}
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["tools"] == [
        {
            "type": "function",
            "name": "now",
            "parameters": {"type": "object", "properties": {}},
            "strict": False,
        }
    ]


HIDDEN = Reasoning(text="", provenance=Provenance(signer=OPENAI, id="rs_1", data="gAAA"))


def test_a_conversation_becomes_items_in_order() -> None:
    said = Reasoning(text="Hm.", provenance=Provenance(signer=OPENAI, id="rs_1", is_summary=True))
    call = ToolCall(id="call_1", name="now", arguments="")
    assert items(
        SystemMessage(content=(Text(text="Be brief."),), role="developer"),
        HI,
        AssistantMessage(content=(said, HIDDEN, Text(text="Let me see."), call)),
        ToolMessage(call_id="call_1", content=(Text(text="noon"),)),
        AssistantMessage(content=(Refusal(text="No."),)),
    ) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "encrypted_content": "gAAA",
            "summary": [{"type": "summary_text", "text": "Hm."}],
        },
        {"role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "call_1", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "noon"},
        {"role": "assistant", "content": "No."},
    ]


@pytest.mark.parametrize(("developer_role", "role"), [(False, "system"), (True, "developer")])
def test_q10_developers_speak_where_the_server_knows_them(developer_role: bool, role: str) -> None:
    message = SystemMessage(content=(Text(text="Be brief."),), role="developer")
    wire = encoded(message, HI, dialect={"developer_role": developer_role})
    assert wire.body["input"] == [
        {"role": role, "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]


def test_q33_several_summaries_go_back_as_several() -> None:
    summary = Provenance(signer=OPENAI, id="rs_1", is_summary=True)
    said = (Reasoning(text=text, provenance=summary) for text in ("a", "\n\nb"))
    (item,) = items(AssistantMessage(content=(*said, HIDDEN)))
    assert [piece["text"] for piece in item["summary"]] == ["a", "b"]


@pytest.mark.parametrize("foreign", [None, Provenance(signer=CLAUDE, id="rs_1", data="gAAA")])
def test_q33_reasoning_that_this_provider_did_not_encrypt_stays_here(
    foreign: Provenance | None,
) -> None:
    assert items(AssistantMessage(content=(Reasoning(text="Hm.", provenance=foreign),))) == []


def test_c11_media_in_messages_and_in_results() -> None:
    page = MediaUrl(url="https://example.org/a.pdf")
    image = {
        "type": "input_image",
        "image_url": "data:image/png;base64,iVBORw0KGgo=",
        "detail": "auto",
    }
    user, result = items(
        UserMessage(
            content=(
                Text(text="?"),
                Image(source=PNG),
                Document(source=PDF),
                Document(source=page),
            )
        ),
        ToolMessage(call_id="a", content=(Image(source=PNG),)),
    )
    assert user["content"] == [
        {"type": "input_text", "text": "?"},
        image,
        {
            "type": "input_file",
            "filename": "document.pdf",
            "file_data": "data:application/pdf;base64,JVBERi0=",
        },
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
    ]
    assert result["output"] == [image]


def test_c11_audio_is_refused_by_name() -> None:
    with pytest.raises(RequestError, match="input_audio") as refused:
        items(UserMessage(content=(Audio(source=WAV, format="wav"),)))
    assert refused.value.code is ErrorCode.AUDIO_NOT_SUPPORTED


@pytest.mark.parametrize(("asked", "sent"), [(100, 100), (9999, 4096), (1, 16)])
def test_c12_the_output_limit_is_capped_and_has_a_least(asked: int, sent: int) -> None:
    wire = encoded(output_tokens_max=asked)
    assert wire.body["max_output_tokens"] == sent
    assert wire.adapted == (("max_tokens",) if asked < 16 else ())


def test_c13_what_the_format_has_no_field_for_is_named() -> None:
    wire = encoded(
        sampling=Sampling(temperature=1.0, top_p=0.5, top_k=1, seed=1, stop=("END",)),
        dialect={"refuses": ("temperature",)},
        user="me",
        prompt_cache_key="k",
    )
    assert wire.adapted == ("temperature", "top_k", "seed", "stop")
    assert (wire.body["top_p"], wire.body["user"]) == (0.5, "me")
    assert wire.body["prompt_cache_key"] == "k"
    assert not {"temperature", "top_k", "seed", "stop"} & set(wire.body)


def test_c13_log_probabilities_are_included() -> None:
    body = encoded(sampling=Sampling(logprobs=True, top_logprobs=2)).body
    assert body["include"] == ["message.output_text.logprobs"]
    assert body["top_logprobs"] == 2


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice(mode="auto"), "auto"),
        (ToolChoice(mode="none"), "none"),
        (ToolChoice(mode="required"), "required"),
        (ToolChoice(mode="named", name="now"), {"type": "function", "name": "now"}),
    ],
)
def test_c15_tool_choice(choice: ToolChoice, expected: Any) -> None:
    tool = Tool(name="now", description="The time.", parameters=SCHEMA, strict=True)
    body: Any = encoded(tools=(tool,), tool_choice=choice, parallel_tool_calls=False).body
    assert body["tool_choice"] == expected
    assert body["parallel_tool_calls"] is False
    assert body["tools"][0]["strict"] is True
    assert body["tools"][0]["parameters"]["additionalProperties"] is False
    assert body["tools"][0]["description"] == "The time."


def test_c16_formats_are_native_where_the_model_enforces_them() -> None:
    strict = SchemaOutput(name="city", schema=SCHEMA, strict=True, description="A city.")
    wire = encoded(supports=("structured_output",), output_format=strict)
    assert wire.body["text"] == {
        "format": {
            "type": "json_schema",
            "name": "city",
            "schema": {**SCHEMA, "additionalProperties": False},
            "strict": True,
            "description": "A city.",
        }
    }
    assert encoded(output_format=JsonOutput()).body["text"] == {"format": {"type": "json_object"}}
    assert encoded(output_format=strict).wrapping == Wrapping(tool=True)


@pytest.mark.parametrize(
    ("wanted", "fields", "adapted"),
    [
        (ReasoningOptions(effort="low"), {"effort": "low", "summary": "auto"}, ()),
        (ReasoningOptions(effort="low", exclude=True), {"effort": "low"}, ()),
        (ReasoningOptions(effort="max"), {"effort": "high", "summary": "auto"}, ("reasoning",)),
        (ReasoningOptions(enabled=True), {"summary": "auto"}, ()),
        (ReasoningOptions(effort="none"), {"effort": "none"}, ()),
        (ReasoningOptions(tokens_max=1), {"effort": "low", "summary": "auto"}, ("reasoning",)),
        (ReasoningOptions(), None, ()),
    ],
)
def test_c17_reasoning_is_an_effort_and_its_summary(
    wanted: ReasoningOptions, fields: Any, adapted: Any
) -> None:
    wire = encoded(
        supports=("reasoning",),
        dialect={"reasoning_summaries": True, "efforts": ("none", "low", "high")},
        reasoning=wanted,
    )
    assert wire.body.get("reasoning") == fields
    assert wire.adapted == adapted


def test_c17_a_model_that_cannot_think_is_not_asked_to() -> None:
    wire = encoded(reasoning=ReasoningOptions(effort="low"))
    assert "reasoning" not in wire.body
    assert wire.adapted == ("reasoning",)


OWN = NativeOptions(
    wire_format="openai_responses",
    fields={"text.verbosity": "low", "reasoning.summary": "detailed", "truncation": "auto"},
)


def test_c80_options_of_openais_own_stand_beside_those_of_the_middle() -> None:
    wire = encoded(
        supports=("reasoning",),
        dialect={"reasoning": "effort", "reasoning_summaries": True},
        output_format=JsonOutput(),
        reasoning=ReasoningOptions(effort="low"),
        native=OWN,
    )
    assert wire.body["text"] == {"format": {"type": "json_object"}, "verbosity": "low"}
    assert wire.body["reasoning"] == {"effort": "low", "summary": "detailed"}
    assert wire.body["truncation"] == "auto"
    assert wire.adapted == ()


def test_c80_a_summary_is_requested_only_of_those_who_give_one() -> None:
    wire = encoded(native=OWN)
    assert "reasoning" not in wire.body
    assert wire.adapted == ("reasoning.summary",)


def test_c80_options_of_another_format_are_named() -> None:
    wire = encoded(native=NativeOptions(wire_format="anthropic", fields={"speed": "fast"}))
    assert "speed" not in wire.body
    assert wire.adapted == ("speed",)


def test_c80_encrypted_reasoning_without_an_id_has_none() -> None:
    sealed = Reasoning(text="", provenance=Provenance(signer=OPENAI, data="gAAA"))
    body: Any = encoded(HI, AssistantMessage(content=(sealed,))).body
    assert body["input"][1] == {"type": "reasoning", "encrypted_content": "gAAA", "summary": []}
