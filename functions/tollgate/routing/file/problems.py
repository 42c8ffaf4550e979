"""Problems in a routing file, printed in the style of compilers: position, code, message and
excerpt.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

Severity = Literal["error", "warning"]

# Known prefixes of provider keys, or any long sequence of letters and digits.
_SECRET_LOOKING: Final = re.compile(
    r"(?:\b(?:sk|pk|rk|gsk|xai|fw|tgp|nvapi|hf|ghp|github_pat)[-_]|AKIA|ASIA|AIza|eyJ)"
    r"[A-Za-z0-9_.+-]{12,}"
    # Matched only at the start of a sequence, because trying every character would take quadratic
    # time.
    r"|(?<![A-Za-z0-9+_])(?=[A-Za-z0-9+_]*[0-9])(?=[A-Za-z0-9+_]*[A-Za-z])[A-Za-z0-9+_]{32,}"
)
_CREDENTIALS_IN_URL: Final = re.compile(r"(?<=://)[^\s/@]+(?=@)|(?<=[?&])[\w-]+=[^\s\"'&]+")
_SHOWN_CHARACTERS: Final = 4
_HIDDEN_WHOLE_BELOW: Final = 16
# Codes for a key written into the file, a variable that may not hold provider keys, a forbidden
# host, and a new host for a key.
_SECURITY_CODES: Final = frozenset({"R040", "R044", "R045", "R046"})
# Codes for a date that is near or has passed: of an alias's sunset, a price check, or the end of a
# model.
_DAY_CODES: Final = frozenset({"R070", "R071", "R072"})


class Problem(Struct, frozen=True, kw_only=True):
    """Problem at a line and column, both counted from 1."""

    file: str
    line: int
    column: int
    code: str
    """A code from R001 to R072, as listed in infra/routing-reference.md."""
    message: str
    severity: Severity = "error"
    hint: str = ""
    """Suggested correction, printed next to the caret."""
    excerpt: str = ""
    """The line in the file, with secrets masked."""
    allowed_in_dev: bool = False
    """True if `tollgate dev` ignores the problem."""

    @property
    def endangers_secret(self) -> bool:
        """True if a secret is exposed, or would be sent to a forbidden or new host."""
        return self.code in _SECURITY_CODES

    @property
    def comes_with_time(self) -> bool:
        """True if the warning appears as time passes, without any change to the file."""
        return self.code in _DAY_CODES


class InvalidRouting(Exception):
    """Raised for a routing file with errors, which are all in `problems`."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(render_text(problem) for problem in problems))
        self.problems = tuple(problems)


def render_text(problem: Problem) -> str:
    """Return a problem for a terminal: position, message, line, and caret under the column."""
    place = f"{problem.file}:{problem.line}:{problem.column}"
    headline = f"{place}: {problem.severity}[{problem.code}] {problem.message}"
    if not problem.excerpt:
        return f"{headline}: {problem.hint}" if problem.hint else headline
    gutter = f"{problem.line:>6} | "
    under = " " * (len(gutter) - 2) + "| " + " " * (problem.column - 1)
    return f"{headline}\n{gutter}{problem.excerpt}\n{under}^ {problem.hint}".rstrip()


def looks_like_secret(value: str) -> bool:
    """Return True if a string could be a pasted key."""
    return _SECRET_LOOKING.search(value) is not None


def mask_secrets(value: str) -> str:
    """Replace everything that looks like a secret with stars, leaving all columns where
    they are.
    """
    without_credentials = _CREDENTIALS_IN_URL.sub(lambda match: hide_secret(match[0]), value)
    return _SECRET_LOOKING.sub(lambda match: hide_secret(match[0]), without_credentials)


def hide_secret(value: str) -> str:
    """Replace a secret with stars, except for the first characters of a long one."""
    shown_length = _SHOWN_CHARACTERS if len(value) >= _HIDDEN_WHOLE_BELOW else 0
    return value[:shown_length] + "*" * (len(value) - shown_length)
