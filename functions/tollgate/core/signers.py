"""The signers of reasoning. Each accepts the data that it signed, whichever host returns the data.

The names are those of OpenRouter's formats in `reasoning_details`, where they exist:
https://openrouter.ai/docs/use-cases/reasoning-tokens (seen 2026-11-22).
"""

from typing import Final

CLAUDE: Final = "anthropic-claude-v1"
GEMINI: Final = "google-gemini-v1"
OPENAI: Final = "openai-responses-v1"
# The signer of blocks, as JSON text, from tools that Anthropic runs; only Anthropic's own format
# accepts such blocks.
ANTHROPIC_BLOCKS: Final = "anthropic-blocks-v1"
# The field of such a block with its deltas of unknown kind, which only a stream can show.
UNKNOWN_DELTAS: Final = "tollgate_deltas"
# The signer of output items, as JSON text, of types that the gateway does not know; only OpenAI's
# Responses format accepts such items.
OPENAI_ITEMS: Final = "openai-items-v1"
# The signer for Bedrock's models other than Claude.
BEDROCK: Final = "amazon-bedrock-v1"

# The gateway itself, whose compaction items are replaced before a provider gets a conversation.
GATEWAY: Final = "tollgate-v1"

# Signers whose reasoning only the model that wrote it accepts, on any host. Claude: "signature
# values are compatible across platforms", "thinking blocks are tied to the model that produced
# them" (https://platform.claude.com/docs/en/build-with-claude/extended-thinking, 2026-11-22);
# another model ignores them, or replies 400: https://github.com/vybestack/llxprt-code/issues/2335
BOUND_TO_MODEL: Final = frozenset({CLAUDE})
