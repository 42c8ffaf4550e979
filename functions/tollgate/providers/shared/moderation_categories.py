"""The categories of OpenAI's moderations, all of which clients read by name."""

from typing import Final

# OpenAI's categories: https://platform.openai.com/docs/guides/moderation (2026-11-22).
OPENAI_CATEGORIES: Final = (
    "harassment",
    "harassment/threatening",
    "hate",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/instructions",
    "self-harm/intent",
    "sexual",
    "sexual/minors",
    "violence",
    "violence/graphic",
)
