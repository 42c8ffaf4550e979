"""Most tokens of an answer with an output limit, since providers do not enforce a limit exactly."""

from typing import Final

# OpenAI's Responses raise a limit to 16 tokens; some servers count the marks that end a turn or
# wrap a call, or check the limit once for several tokens that they draft together.
_SLACK_TOKENS: Final = 64
_SLACK_PART: Final = 8


def with_slack(limit: int) -> int:
    """Return the most output tokens that a caller with this limit is held and billed for."""
    return limit + limit // _SLACK_PART + _SLACK_TOKENS
