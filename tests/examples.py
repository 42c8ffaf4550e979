"""With how many examples hypothesis tries a property: few at a pull request, many each night."""

from typing import Final

from hypothesis import settings

EXAMPLES: Final = {"pull_request": 10, "night": 300}


def costly(times: int) -> settings:
    """Return settings for a property whose example costs as much as so many of another."""
    return settings(max_examples=max(1, settings.default.max_examples // times))
