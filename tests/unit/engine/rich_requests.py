"""Requests in each client format that use most of its fields at once."""

from tests.unit.engine.client_formats import CHAT, LEGACY, MESSAGE, RESPONSE
from tests.unit.engine.same_conversations import Json, data_url
from tests.unit.providers.requests import PDF, PNG

_MARK = {"type": "ephemeral", "ttl": "1h"}
_ROUTED: Json = {
    "models": ["acme/large"],
    "provider": {"order": ["near"], "max_price": {"prompt": 1_000, "completion": 1_000}},
    "session_id": "s-1",
}
_SAMPLED: Json = {
    "temperature": 0.5,
    "top_p": 0.5,
    "seed": 3,
    "stop": ["END"],
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "logit_bias": {"1": 2},
    "user": "u-1",
}
_CHAT: Json = {
    **_ROUTED,
    **_SAMPLED,
    "messages": [
        {
            "role": "system",
            "content": [{"type": "text", "text": "Be brief.", "cache_control": _MARK}],
        },
        {
            "role": "user",
            "name": "Zoe",
            "content": [
                {"type": "text", "text": "Look."},
                {
                    "type": "image_url",
                    "image_url": {"url": data_url(PNG.media_type, PNG.base64), "detail": "low"},
                },
            ],
        },
        {
            "role": "assistant",
            "content": "So.",
            "refusal": "No.",
            "server_tool_calls": [
                {
                    "id": "r1",
                    "type": "server_tool",
                    "name": "web_search",
                    "arguments": '{"query":"a"}',
                    "status": "completed",
                    "result": "Found.",
                    "sources": [],
                    "after": {"text": 2},
                }
            ],
            "reasoning_details": [
                {
                    "type": "reasoning.text",
                    "text": "Hm.",
                    "signature": "c2ln",
                    "format": "anthropic-claude-v1",
                    "id": "t1",
                    "index": 0,
                }
            ],
        },
        {"role": "user", "content": "Go on."},
    ],
    "min_p": 0.1,
    "top_k": 3,
    "repetition_penalty": 1,
    "logprobs": True,
    "top_logprobs": 2,
    "response_format": {"type": "json_object"},
    "reasoning": {"effort": "high", "exclude": False},
    "stream_options": {"include_usage": True},
    "usage_on": "finish",
    "metadata": {"team": "a"},
    "service_tier": "auto",
    "prompt_cache_key": "k",
    "episode_id": "019aa6c4-0000-7000-8000-000000000000",
    "plugins": [],
}
_GUIDED: Json = {"messages": [{"role": "user", "content": "Hi"}], "guided_choice": ["a", "b"]}
_MESSAGES: Json = {
    **_ROUTED,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": _MARK}],
    "messages": [
        {
            "role": "user",
            "content": [
                {
                    "type": "search_result",
                    "source": "s",
                    "title": "t",
                    "content": [{"type": "text", "text": "Found."}],
                },
                {
                    "type": "document",
                    "title": "t",
                    "context": "c",
                    "citations": {"enabled": True},
                    "source": {"type": "text", "media_type": "text/plain", "data": "Words."},
                },
                {
                    "type": "document",
                    "source": {"type": "content", "content": [{"type": "text", "text": "Words."}]},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "thinking", "thinking": "", "format": "x-v1", "data": "d", "id": "i"},
                {"type": "redacted_thinking", "data": "c2ln"},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_tollgate_1",
                    "name": "web_fetch",
                    "input": {"url": "https://example.com"},
                },
                {
                    "type": "web_fetch_tool_result",
                    "tool_use_id": "srvtoolu_tollgate_1",
                    "content": {"content": {"source": {"data": "Words."}}},
                },
                {"type": "text", "text": "So."},
            ],
        },
        {"role": "system", "content": "The date is today."},
        {"role": "user", "content": "Go on."},
    ],
    "tools": [
        {"type": "bash_20250124", "name": "bash"},
        {
            "name": "weather",
            "description": "Tells.",
            "input_schema": {"type": "object", "properties": {}},
            "strict": True,
            "cache_control": _MARK,
            "defer_loading": True,
            "input_examples": [{}],
            "allowed_callers": ["direct"],
            "eager_input_streaming": True,
        },
    ],
    "thinking": {"type": "adaptive", "display": "omitted"},
    "output_config": {"effort": "high", "task_budget": {"type": "tokens", "total": 50_000}},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "metadata": {"user_id": "u-1"},
    "service_tier": "auto",
    "cache_control": {"type": "ephemeral"},
    "stop_sequences": ["END"],
    "top_k": 3,
    "mcp_servers": [],
}
_RESPONSES: Json = {
    **_ROUTED,
    "instructions": "Be brief.",
    "input": [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Be kind."}],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "content": [{"type": "reasoning_text", "text": "Well."}],
            "encrypted_content": "gAAA",
        },
        {"type": "reasoning", "id": "rs_3", "summary": [], "format": "x-v1", "signature": "c2ln"},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "So.", "annotations": [], "logprobs": []},
                {"type": "refusal", "refusal": "No."},
            ],
        },
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "Done."},
        {
            "type": "function_call",
            "call_id": "d",
            "name": "shell",
            "namespace": "os",
            "arguments": "{}",
        },
        {
            "type": "function_call_output",
            "call_id": "d",
            "output": [{"type": "input_text", "text": "Done."}],
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "tollgate",
            "name": "datetime",
            "arguments": "{}",
            "output": "Sunday",
            "status": "completed",
        },
        {"type": "item_reference", "id": "rs_2"},
        {
            "type": "additional_tools",
            "role": "developer",
            "tools": [{"type": "function", "name": "more", "parameters": {}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "input_file",
                    "file_data": data_url(PDF.media_type, PDF.base64),
                    "filename": "a.pdf",
                }
            ],
        },
    ],
    "tools": [
        {
            "type": "custom",
            "name": "patch",
            "description": "Patches.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: WORD"},
        },
        {
            "type": "namespace",
            "name": "os",
            "description": "The machine.",
            "tools": [
                {
                    "type": "function",
                    "name": "shell",
                    "parameters": {"type": "object"},
                    "strict": False,
                }
            ],
        },
        {"type": "web_search"},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "custom", "name": "patch"}],
    },
    "text": {"verbosity": "low", "format": {"type": "json_object"}},
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    "top_logprobs": 2,
    "truncation": "auto",
    "metadata": {"team": "a"},
    "prompt_cache_key": "k",
    "service_tier": "auto",
    "store": False,
    "background": False,
    "safety_identifier": "u-1",
    "client_metadata": {"team": "a"},
}
_COMPLETIONS: Json = {
    **_ROUTED,
    **_SAMPLED,
    "prompt": ["Once", "Twice"],
    "echo": False,
    "logprobs": 2,
    "metadata": {"team": "a"},
    "stream_options": {"include_usage": True},
}
RICH: dict[str, list[Json]] = {
    CHAT.name: [_CHAT, _GUIDED],
    LEGACY.name: [_COMPLETIONS],
    MESSAGE.name: [_MESSAGES],
    RESPONSE.name: [_RESPONSES],
}
