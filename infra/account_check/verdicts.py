"""The outcome of one question, and the table of them all."""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct, to_builtins

from tollgate.cli.tables import OutputStyle, show

# `unanswered`: the stack or the account gave no way to ask; what was seen says why.
Judgement = Literal["as expected", "otherwise", "unanswered"]
_COLUMNS: Final = ("question", "verdict", "seen", "do")


class Verdict(Struct, frozen=True, kw_only=True):
    """The answer to one question."""

    question: str
    judgement: Judgement
    expected: str
    seen: str
    otherwise: str
    """The remedy if it is not as expected."""


class Question(Struct, frozen=True, kw_only=True):
    """One thing that documents do not settle; its probe answers it."""

    name: str
    expected: str
    otherwise: str

    def judge(self, seen: str, *, as_expected: bool) -> Verdict:
        """Return the verdict on what was seen."""
        return self._verdict("as expected" if as_expected else "otherwise", seen)

    def leave(self, why: str) -> Verdict:
        """Return the verdict that there is none."""
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
    """Print one table; what to do stands only where something is not as expected."""
    rows = [
        {
            "question": it.question,
            "verdict": it.judgement,
            "seen": it.seen,
            "do": it.otherwise if it.judgement == "otherwise" else "",
        }
        for it in verdicts
    ]
    show(rows, _COLUMNS, style, data=to_builtins(list(verdicts)))
