"""The signers of reasoning. A signer accepts data that it signed, whichever host sends it back.

Where OpenRouter has names for the formats in `reasoning_details`, these are used:
https://openrouter.ai/docs/use-cases/reasoning-tokens (seen 2026-11-22).
"""

from typing import Final

CLAUDE: Final = "anthropic-claude-v1"
GEMINI: Final = "google-gemini-v1"
OPENAI: Final = "openai-responses-v1"
# The signer of blocks, as JSON text, from tools that Anthropic runs. Only Anthropic's own format
# accepts such blocks.
ANTHROPIC_BLOCKS: Final = "anthropic-blocks-v1"
# The field of such a block that holds its deltas of unknown type, which only a stream can contain.
UNKNOWN_DELTAS: Final = "tollgate_deltas"
# The signer of output items, as JSON text, whose types the gateway does not know. Only OpenAI's
# Responses format accepts such items.
OPENAI_ITEMS: Final = "openai-items-v1"
# The signer of compaction items. The planner sends an item only to the provider that made it.
OPENAI_COMPACTIONS: Final = "openai-compactions-v1"
# The signer for models on Bedrock other than Claude.
BEDROCK: Final = "amazon-bedrock-v1"

# The gateway itself, which resolves its compaction items before it sends a conversation.
GATEWAY: Final = "tollgate-v1"

# Signers whose reasoning is accepted only by the model that wrote it, on any host. Claude:
# "signature values are compatible across platforms", "thinking blocks are tied to the model that
# produced them" (https://platform.claude.com/docs/en/build-with-claude/extended-thinking,
# 2026-11-22); another model ignores them, or replies 400:
# https://github.com/vybestack/llxprt-code/issues/2335
BOUND_TO_MODEL: Final = frozenset({CLAUDE})
