"""Fields of Anthropic's format that are never forwarded, although the gateway does not read them.

They select a dearer service or another model ("fast mode" has six times the price, `fallbacks` lets
another model answer: platform.claude.com/docs, 2026-11-27), they are the gateway's own in a
provider's body, or they carry credentials and addresses in other gateways' requests.
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
