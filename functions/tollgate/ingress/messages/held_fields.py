"""Unknown fields of Anthropic's format that are never forwarded, for one of three reasons.

1. The field selects a more expensive service or another model: "fast mode" costs six times as much,
   and `fallbacks` lets another model answer (platform.claude.com/docs, 2026-11-27).
2. The gateway itself sets the field in a provider's body.
3. Requests to other gateways pass credentials or addresses in the field.
"""

from typing import Final

HELD: Final = frozenset(
    {
        "anthropic_beta",
        "anthropic_version",
        "api_base",
        "api_key",
        "base_url",
        "extra_body",
        "extra_headers",
        "fallback",
        "fallbacks",
        "mock_response",
        "n",
        "speed",
    }
)
