"""Questions of the account check, and the verdicts on them."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct, to_builtins

from tollgate.cli.tables import OutputStyle, show

# `unanswered` means that the probe could not find out; `seen` has the reason.
Judgement = Literal["as expected", "otherwise", "unanswered"]
_COLUMNS: Final = ("question", "verdict", "seen", "do")


class Verdict(Struct, frozen=True, kw_only=True):
    """The answer to a question."""

    question: str
    judgement: Judgement
    expected: str
    seen: str
    otherwise: str
    """The remedy if the answer is not as expected."""


class Question(Struct, frozen=True, kw_only=True):
    """A question that AWS's documentation does not answer."""

    name: str
    expected: str
    otherwise: str

    def judge(self, seen: str, *, as_expected: bool) -> Verdict:
        """Return the verdict on an observation."""
        return self._verdict("as expected" if as_expected else "otherwise", seen)

    def leave(self, why: str) -> Verdict:
        """Return the verdict `unanswered`, with the reason."""
        return self._verdict("unanswered", why)

    def _verdict(self, judgement: Judgement, seen: str) -> Verdict:
        return Verdict(
            question=self.name,
            judgement=judgement,
            expected=self.expected,
            seen=seen,
            otherwise=self.otherwise,
        )


def print_verdicts(verdicts: Sequence[Verdict], style: OutputStyle) -> None:
    """Print a table of verdicts, with remedies for unexpected answers."""
    rows = [
        {
            "question": verdict.question,
            "verdict": verdict.judgement,
            "seen": verdict.seen,
            "do": verdict.otherwise if verdict.judgement == "otherwise" else "",
        }
        for verdict in verdicts
    ]
    show(rows, _COLUMNS, style, data=to_builtins(list(verdicts)))
