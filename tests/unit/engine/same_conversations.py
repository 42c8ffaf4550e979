"""Conversations, each in the words of chat completions and of Messages."""

import json
from typing import Any

from tests.unit.providers.requests import PDF, PNG, SCHEMA

Json = dict[str, Any]
HI: Json = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4_000}
TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("weather", "now")]


def data_url(type_: str, content: str) -> str:
    return f"data:{type_};base64,{content}"


def user(*content: Json) -> Json:
    return {"messages": [{"role": "user", "content": list(content)}]}


TEXT = {"type": "text", "text": "Read it."}
CHAT_TOOLS = {
    "tools": [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in ("weather", "now")
    ]
}
CLOSED = SCHEMA | {"additionalProperties": False}
CALLED = [("call_1", "weather", '{"city":"Paris"}'), ("call_2", "now", "{}")]
# One conversation in the words of both formats.
SAME: dict[str, tuple[Json, Json]] = {
    "text": (user(TEXT), user(TEXT)),
    "turns": (
        said := {
            "messages": [
                {"role": "user", "content": "One?"},
                {"role": "assistant", "content": "Two."},
                {"role": "user", "content": "Three?"},
            ]
        },
        said,
    ),
    "system": (
        {"messages": [{"role": "system", "content": "Be brief."}, *HI["messages"]]},
        {"system": "Be brief.", "messages": HI["messages"]},
    ),
    "tools": (
        user(TEXT) | CHAT_TOOLS | {"tool_choice": "required"},
        user(TEXT) | {"tools": TOOLS, "tool_choice": {"type": "any"}},
    ),
    "named tool": (
        user(TEXT)
        | CHAT_TOOLS
        | {"tool_choice": {"type": "function", "function": {"name": "now"}}},
        user(TEXT) | {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "now"}},
    ),
    "one call": (
        user(TEXT) | CHAT_TOOLS | {"tool_choice": "auto", "parallel_tool_calls": False},
        user(TEXT)
        | {"tools": TOOLS, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
    ),
    "parallel tools": (
        CHAT_TOOLS
        | {
            "messages": [
                *HI["messages"],
                {
                    "role": "assistant",
                    "content": "I look.",
                    "tool_calls": [
                        {
                            "id": id_,
                            "type": "function",
                            "function": {"name": name, "arguments": arguments},
                        }
                        for id_, name, arguments in CALLED
                    ],
                },
                *(
                    {"role": "tool", "tool_call_id": id_, "content": f"{id_} done"}
                    for id_, _, _ in CALLED
                ),
            ]
        },
        {
            "tools": TOOLS,
            "messages": [
                *HI["messages"],
                {
                    "role": "assistant",
                    "content": [
                        {"type": "text", "text": "I look."},
                        *(
                            {
                                "type": "tool_use",
                                "id": id_,
                                "name": name,
                                "input": json.loads(arguments),
                            }
                            for id_, name, arguments in CALLED
                        ),
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": id_, "content": f"{id_} done"}
                        for id_, _, _ in CALLED
                    ],
                },
            ],
        },
    ),
    "image": (
        user(
            {"type": "image_url", "image_url": {"url": data_url(PNG.media_type, PNG.base64)}}, TEXT
        ),
        user(
            {
                "type": "image",
                "source": {"type": "base64", "media_type": PNG.media_type, "data": PNG.base64},
            },
            TEXT,
        ),
    ),
    "file": (
        user(
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": data_url(PDF.media_type, PDF.base64)},
            },
            TEXT,
        ),
        user(
            {
                "type": "document",
                "title": "a.pdf",
                "source": {"type": "base64", "media_type": PDF.media_type, "data": PDF.base64},
            },
            TEXT,
        ),
    ),
    "schema": (
        user(TEXT)
        | {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": CLOSED},
            }
        },
        user(TEXT) | {"output_config": {"format": {"type": "json_schema", "schema": CLOSED}}},
    ),
    "reasoning": (
        user(TEXT) | {"reasoning": {"max_tokens": 2_000}},
        user(TEXT) | {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
    ),
    "sampling": (
        user(TEXT) | {"temperature": 0.5, "top_k": 7, "stop": ["END"]},
        user(TEXT) | {"temperature": 0.5, "top_k": 7, "stop_sequences": ["END"]},
    ),
}
