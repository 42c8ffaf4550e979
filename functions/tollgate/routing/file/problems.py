"""What is wrong with a routing file, said the way compilers do: place, code, words, excerpt."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

Severity = Literal["error", "warning"]

# Keys of the providers we know, then any long run that mixes letters and digits as keys do.
_SECRET_LOOKING: Final = re.compile(
    r"(?:\b(?:sk|pk|rk|gsk|xai|fw|tgp|nvapi|hf|ghp|github_pat)[-_]|AKIA|ASIA|AIza|eyJ)"
    r"[A-Za-z0-9_.+-]{12,}"
    # Looked for only where a run begins: from each of its characters would take quadratic time.
    r"|(?<![A-Za-z0-9+_])(?=[A-Za-z0-9+_]*[0-9])(?=[A-Za-z0-9+_]*[A-Za-z])[A-Za-z0-9+_]{32,}"
)
_CREDENTIALS_IN_URL: Final = re.compile(r"(?<=://)[^\s/@]+(?=@)|(?<=[?&])[\w-]+=[^\s\"'&]+")
_SHOWN_CHARACTERS: Final = 4
_HIDDEN_WHOLE_BELOW: Final = 16


class Problem(Struct, frozen=True, kw_only=True):
    """One finding, at a line and a column that count from 1.

    `excerpt` is that line with secrets masked; `hint`, what to write instead, goes to the caret.
    """

    file: str
    line: int
    column: int
    code: str
    message: str
    severity: Severity = "error"
    hint: str = ""
    excerpt: str = ""


class InvalidRouting(Exception):
    """A routing file that must not be used, with all its errors."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(render_text(problem) for problem in problems))
        self.problems = tuple(problems)


def render_text(problem: Problem) -> str:
    """For a terminal: the place, then the line and a caret under it."""
    place = f"{problem.file}:{problem.line}:{problem.column}"
    headline = f"{place}: {problem.severity}[{problem.code}] {problem.message}"
    if not problem.excerpt:
        return f"{headline}: {problem.hint}" if problem.hint else headline
    gutter = f"{problem.line:>6} | "
    under = " " * (len(gutter) - 2) + "| " + " " * (problem.column - 1)
    return f"{headline}\n{gutter}{problem.excerpt}\n{under}^ {problem.hint}".rstrip()


def looks_like_secret(value: str) -> bool:
    """Whether a text could be a key that somebody pasted."""
    return _SECRET_LOOKING.search(value) is not None


def masked(value: str) -> str:
    """The text with whatever looks like a secret hidden, of unchanged length."""
    without_credentials = _CREDENTIALS_IN_URL.sub(lambda match: hidden(match[0]), value)
    return _SECRET_LOOKING.sub(lambda match: hidden(match[0]), without_credentials)


def hidden(value: str) -> str:
    """A secret's first characters if it is long, then stars; the length stays, for the caret."""
    shown = _SHOWN_CHARACTERS if len(value) >= _HIDDEN_WHOLE_BELOW else 0
    return value[:shown] + "*" * (len(value) - shown)
