"""Fields that are never forwarded as unknown, because they change the bill or what is protected.

A field that the gateway declares is never unknown. This table has the fields without a declaration
that select a dearer service or another model, store data at the provider, or carry credentials.
"""

from collections.abc import Mapping
from typing import Final

_OF_GATEWAYS: Final = frozenset(
    {"api_base", "api_key", "base_url", "extra_body", "extra_headers", "mock_response"}
)
HELD: Final[Mapping[str, frozenset[str]]] = {
    # "Fast mode" has six times the price; `fallbacks` lets another model answer. The versions and
    # betas of a body are the gateway's: platform.claude.com/docs (2026-11-27).
    "anthropic": _OF_GATEWAYS
    | {"anthropic_beta", "anthropic_version", "fallback", "fallbacks", "n", "speed"},
    # `store` keeps prompts at OpenAI; the others are options of OpenRouter, which OpenAI refuses.
    "openai_chat": _OF_GATEWAYS
    | {"background", "container", "mcp_servers", "preset", "route", "store", "transforms", "usage"},
    "openai_responses": _OF_GATEWAYS
    | {"container", "mcp_servers", "n", "preset", "route", "stream_options", "transforms", "usage"},
}
