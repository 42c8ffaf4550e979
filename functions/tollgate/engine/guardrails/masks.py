"""Replaces findings with marks, and the marks in an answer with the original texts."""

import re
from collections import Counter
from typing import Final

_MARK: Final = re.compile(r"\[[a-z][a-z0-9_]{0,31}_[0-9]{1,6}\]")
MARK_CHARACTERS_MAX: Final = 41


class Masks:
    """Marks of one generation; the same text always has the same mark."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._originals: dict[str, str] = {}
        self._issued: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._originals)

    def mark(self, finding: str, original: str, *, restores: bool) -> str:
        """Return the mark for a text, such as `[email_1]`."""
        mark = self._marks.get(original)
        if mark is None:
            self._numbers[finding] += 1
            mark = self._marks[original] = f"[{finding}_{self._numbers[finding]}]"
            self._issued.add(mark)
        if restores:
            self._originals[mark] = original
        return mark

    def unmarked(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of a text that are outside all marks of this generation."""
        spans, place = [], 0
        for mark in _MARK.finditer(text):
            if mark.group() in self._issued:
                spans.append((place, mark.start()))
                place = mark.end()
        return [*spans, (place, len(text))]

    def restore(self, text: str) -> str:
        """Return the text with the originals in place of restorable marks."""
        return _MARK.sub(lambda mark: self._originals.get(mark.group(), mark.group()), text)


def complete_marks(text: str) -> int:
    """Return the length of an unfinished text without any incomplete mark at its end."""
    begin = text.rfind("[", max(0, len(text) - MARK_CHARACTERS_MAX))
    return len(text) if begin < 0 or "]" in text[begin:] else begin
