"""The signers of reasoning: each recognises the data that it made, whichever host passes it on.

The names are OpenRouter's formats of `reasoning_details`, where it has one:
https://openrouter.ai/docs/use-cases/reasoning-tokens (seen 2026-11-22).
"""

from typing import Final

CLAUDE: Final = "anthropic-claude-v1"
GEMINI: Final = "google-gemini-v1"
OPENAI: Final = "openai-responses-v1"
# Blocks of the tools that Anthropic's own format runs, as JSON text: only that format takes them.
ANTHROPIC_BLOCKS: Final = "anthropic-blocks-v1"
# Models of Bedrock that are not Claude.
BEDROCK: Final = "amazon-bedrock-v1"

# Signers whose reasoning only the model that wrote it takes back, on any host. Claude: "signature
# values are compatible across platforms", "thinking blocks are tied to the model that produced
# them" (https://platform.claude.com/docs/en/build-with-claude/extended-thinking, 2026-11-22);
# another model ignores them, or answers 400: https://github.com/vybestack/llxprt-code/issues/2335
BOUND_TO_MODEL: Final = frozenset({CLAUDE})
