"""Conversations, each in the words of every client format."""

from typing import Any

from tests.unit.providers.requests import PDF, PNG, SCHEMA
from tollgate.ingress.formats import CHAT_COMPLETIONS, COMPLETIONS, MESSAGES, RESPONSES

Json = dict[str, Any]
HI: Json = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4_000}
NAMES = ("weather", "now")
TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in NAMES]
_FUNCTIONS = [{"name": name, "parameters": {"type": "object"}} for name in NAMES]
CHAT_TOOLS = [{"type": "function", "function": function} for function in _FUNCTIONS]
RESPONSES_TOOLS = [{"type": "function", **function} for function in _FUNCTIONS]


def in_formats(
    chat: Json, messages: Json, responses: Json, completions: Json | None = None
) -> dict[str, Json]:
    """Return the bodies of one conversation by format; few fit into a bare prompt."""
    bodies = {CHAT_COMPLETIONS.name: chat, MESSAGES.name: messages, RESPONSES.name: responses}
    return bodies if completions is None else bodies | {COMPLETIONS.name: completions}


def data_url(type_: str, content: str) -> str:
    return f"data:{type_};base64,{content}"


def user(*content: Json, role: str = "user") -> Json:
    return {"messages": [{"role": role, "content": list(content)}]}


def item(*content: Json, role: str = "user") -> Json:
    return {"input": [{"role": role, "content": list(content)}]}


WORDS = "Read it."
TEXT = {"type": "text", "text": WORDS}
INPUT_TEXT = {"type": "input_text", "text": WORDS}
PROMPT = {"prompt": WORDS}
CLOSED = SCHEMA | {"additionalProperties": False}
CALLED = [("call_1", "weather", {"city": "Paris"}, '{"city":"Paris"}'), ("call_2", "now", {}, "{}")]
_TURNS = [
    {"role": "user", "content": "One?"},
    {"role": "assistant", "content": "Two."},
    {"role": "user", "content": "Three?"},
]
_IMAGE = data_url(PNG.media_type, PNG.base64)
_CLAUDE_IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": PNG.media_type, "data": PNG.base64},
}
_FILE = {"filename": "a.pdf", "file_data": data_url(PDF.media_type, PDF.base64)}
_STRICT = {"name": "answer", "strict": True, "schema": CLOSED}


def asking(
    chat: Json, messages: Json, responses: Json, completions: Json | None = None
) -> dict[str, Json]:
    """Return the same question with these fields of each format."""
    return in_formats(
        user(TEXT) | chat,
        user(TEXT) | messages,
        item(INPUT_TEXT) | responses,
        None if completions is None else PROMPT | completions,
    )


def choosing(chat: Json, messages: Json, responses: Json) -> dict[str, Json]:
    """Return the same question with tools, and with these fields of each format."""
    return asking(
        {"tools": CHAT_TOOLS} | chat,
        {"tools": TOOLS} | messages,
        {"tools": RESPONSES_TOOLS} | responses,
    )


def _results(result: str | Json) -> dict[str, Json]:
    """Return a turn of two calls and their results; `result` stands in each."""
    in_responses: Any = result
    in_chat: Any = result
    if isinstance(result, dict):
        in_chat = [{"type": "image_url", "image_url": {"url": _IMAGE}}]
        in_responses = [{"type": "input_image", "image_url": _IMAGE}]
        result = [result]  # type: ignore[assignment]  # as Messages has it
    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": text}}
        for id_, name, _, text in CALLED
    ]
    chat = [
        *HI["messages"],
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": id_, "content": in_chat} for id_, *_ in CALLED),
    ]
    uses = [
        {"type": "tool_use", "id": id_, "name": name, "input": arguments}
        for id_, name, arguments, _ in CALLED
    ]
    told = [{"type": "tool_result", "tool_use_id": id_, "content": result} for id_, *_ in CALLED]
    messages = [
        *HI["messages"],
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *uses]},
        {"role": "user", "content": told},
    ]
    items = [
        *HI["messages"],
        {"role": "assistant", "content": "I look."},
        *(
            {"type": "function_call", "call_id": id_, "name": name, "arguments": text}
            for id_, name, _, text in CALLED
        ),
        *(
            {"type": "function_call_output", "call_id": id_, "output": in_responses}
            for id_, *_ in CALLED
        ),
    ]
    return in_formats(
        {"tools": CHAT_TOOLS, "messages": chat},
        {"tools": TOOLS, "messages": messages},
        {"tools": RESPONSES_TOOLS, "input": items},
    )


# One conversation in the words of all formats that have words for it.
SAME: dict[str, dict[str, Json]] = {
    "text": in_formats(user(TEXT), user(TEXT), {"input": WORDS}, PROMPT),
    "turns": in_formats({"messages": _TURNS}, {"messages": _TURNS}, {"input": _TURNS}),
    "system": in_formats(
        {"messages": [{"role": "system", "content": "Be brief."}, *HI["messages"]]},
        {"system": "Be brief.", "messages": HI["messages"]},
        {"input": [{"role": "system", "content": "Be brief."}, *HI["messages"]]},
    ),
    "tools": choosing(
        {"tool_choice": "required"},
        {"tool_choice": {"type": "any"}},
        {"tool_choice": "required"},
    ),
    "named tool": choosing(
        {"tool_choice": {"type": "function", "function": {"name": "now"}}},
        {"tool_choice": {"type": "tool", "name": "now"}},
        {"tool_choice": {"type": "function", "name": "now"}},
    ),
    "one call": choosing(
        {"tool_choice": "auto", "parallel_tool_calls": False},
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"tool_choice": "auto", "parallel_tool_calls": False},
    ),
    "parallel tools": _results("It is done."),
    "image of a tool": _results(_CLAUDE_IMAGE),
    "image": in_formats(
        user({"type": "image_url", "image_url": {"url": _IMAGE}}, TEXT),
        user(_CLAUDE_IMAGE, TEXT),
        item({"type": "input_image", "image_url": _IMAGE}, INPUT_TEXT),
    ),
    "file": in_formats(
        user({"type": "file", "file": _FILE}, TEXT),
        user(
            {
                "type": "document",
                "title": "a.pdf",
                "source": {"type": "base64", "media_type": PDF.media_type, "data": PDF.base64},
            },
            TEXT,
        ),
        item({"type": "input_file", **_FILE}, INPUT_TEXT),
    ),
    "JSON schema": asking(
        {"response_format": {"type": "json_schema", "json_schema": _STRICT}},
        {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}},
        {"text": {"format": {"type": "json_schema", **_STRICT}}},
    ),
    "effort": asking(
        {"reasoning_effort": "high"},
        {
            "thinking": {"type": "adaptive", "display": "summarized"},
            "output_config": {"effort": "high"},
        },
        {"reasoning": {"effort": "high"}},
    ),
    # Responses has no words for a budget of tokens.
    "budget": {
        CHAT_COMPLETIONS.name: user(TEXT) | {"reasoning": {"max_tokens": 2_000}},
        MESSAGES.name: user(TEXT) | {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
    },
    "sampling": asking(
        {"temperature": 0.5, "top_p": 0.9, "top_k": 7, "stop": ["END"]},
        {"temperature": 0.5, "top_p": 0.9, "top_k": 7, "stop_sequences": ["END"]},
        {"temperature": 0.5, "top_p": 0.9, "top_k": 7, "stop": ["END"]},
        {"temperature": 0.5, "top_p": 0.9, "top_k": 7, "stop": ["END"]},
    ),
    "end user": asking(
        {"user": "u-1"}, {"metadata": {"user_id": "u-1"}}, {"user": "u-1"}, {"user": "u-1"}
    ),
}
