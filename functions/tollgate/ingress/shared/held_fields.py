"""Fields that are never forwarded, although the gateway does not read them.

They select a dearer service or another model, limit or multiply the answer, name what the provider
stores, are the gateway's own in a provider's body, or carry credentials and addresses in requests
to other gateways. Sources, seen 2026-11-27: platform.claude.com/docs ("fast mode" has six times the
price, `fallbacks` lets another model answer), platform.openai.com/docs/api-reference,
openrouter.ai/docs/api-reference/parameters, docs.x.ai (`deferred`) and docs.litellm.ai.
"""

from typing import Final

_EVERYWHERE: Final = frozenset(
    {
        "api_base",
        "api_key",
        "base_url",
        "extra_body",
        "extra_headers",
        "fallback",
        "fallbacks",
        "mock_response",
        "speed",
    }
)
_OF_OPENAI: Final = _EVERYWHERE | {
    "best_of",
    "deferred",
    "prediction",
    "route",
    "search_parameters",
    "thinking",
    "transforms",
    "usage",
    "web_search",
}

HELD_OF_MESSAGES: Final = _EVERYWHERE | {"anthropic_beta", "anthropic_version", "n"}
HELD_OF_CHAT: Final = _OF_OPENAI | {
    "background",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "previous_response_id",
    "prompt",
    "safety_identifier",
    "store",
}
HELD_OF_RESPONSES: Final = _OF_OPENAI | {
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "modalities",
    "n",
    "plugins",
    "reasoning_effort",
    "response_format",
    "stream_options",
    "web_search_options",
}
