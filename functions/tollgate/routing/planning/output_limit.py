"""The maximum length of an answer with an output limit, because providers do not enforce limits
exactly.
"""

from typing import Final

# OpenAI's Responses API raises any lower limit to 16 tokens. Some servers count the marks that end
# a turn or wrap a call, or check the limit only once for several tokens that are drafted together.
_SLACK_TOKENS: Final = 64
_SLACK_PART: Final = 8


def with_slack(limit: int) -> int:
    """Return the maximum output tokens that are held and billed for a caller with this limit."""
    return limit + limit // _SLACK_PART + _SLACK_TOKENS
