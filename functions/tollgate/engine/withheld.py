"""Removes parts of the prompt from a provider's message.

A provider may quote the request in an error. Records, and callers' logs of errors, are read by
people other than the caller and must not contain a prompt. The function removes sequences of three
words from the request, quotations of its words, and single words that contain a digit or come from
a message with one or two words.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from tollgate.core.escapes import resolve_escapes
from tollgate.core.work.base import Work

_WITHHELD: Final = "[prompt]"
_RUN: Final = 3
_PIECE_LENGTH: Final = 64 * 1024
_OVERLAP_LENGTH: Final = 4 * 1024
# Shorter numbers are common in any sentence.
_NUMBER_LENGTH_MIN: Final = 4
# Each non-ASCII character counts as a word, because some scripts have no spaces between words.
_WORD: Final = re.compile(r"[A-Za-z0-9]+|[^\x00-\x7f]")
_QUOTED: Final = re.compile(r"\"([^\"]+)\"|'([^']+)'|`([^`]+)`|“([^”]+)”")
# Fields that contain none of the caller's text, or whose values are too large to be quoted.
_NO_PROSE: Final = frozenset({"base64", "field", "id", "name", "model", "place", "preferences"})


def withhold_prompt(words: str, request: Work) -> str:
    """Return a provider's message with `[prompt]` in place of parts of the request."""
    text = " ".join(resolve_escapes(words).split())
    found = list(_WORD.finditer(text))
    refusal_words = [match[0].casefold() for match in found]
    overlap = _Overlap(refusal_words)
    for own_text in request.own_texts:
        overlap.compare(own_text, is_message=True)
    overlap.compare(request.user or "", is_message=True)
    for other in _texts(request):
        overlap.compare(other)
    hidden = {place for place in range(len(refusal_words)) if overlap.hides(place)}
    for quoted in _QUOTED.finditer(text):
        inside = [
            place
            for place, match in enumerate(found)
            if quoted.start() < match.start() and match.end() < quoted.end()
        ]
        if all(refusal_words[place] in overlap.common for place in inside):
            hidden.update(inside)
    return _without(text, [(found[place].start(), found[place].end()) for place in sorted(hidden)])


class _Overlap:
    """The words and word sequences that a provider's message shares with a request."""

    def __init__(self, refusal_words: Sequence[str]) -> None:
        self._refusal_words = refusal_words
        self._words = frozenset(refusal_words)
        self._runs = {
            tuple(refusal_words[place : place + _RUN])
            for place in range(len(refusal_words) - _RUN + 1)
        }
        self._found: set[tuple[str, ...]] = set()
        self._alone: set[str] = set()
        self.common: set[str] = set()

    def compare(self, text: str, *, is_message: bool = False) -> None:
        """Record the words and sequences that also occur in one text of the request.

        A long text is compared in overlapping pieces, so that other threads can run in between.
        """
        if len(text) > _PIECE_LENGTH:
            for start in range(0, len(text), _PIECE_LENGTH):
                self.compare(text[start : start + _PIECE_LENGTH])
                middle = start + _PIECE_LENGTH
                self.compare(text[middle - _OVERLAP_LENGTH : middle + _OVERLAP_LENGTH])
            return
        words = [word.casefold() for word in _WORD.findall(resolve_escapes(text))]
        self.common |= self._words.intersection(words)
        self._found |= self._runs.intersection(zip(words, words[1:], words[2:], strict=False))
        if is_message and len(words) < _RUN:
            self._alone.update(word for word in words if len(word) > 1)

    def hides(self, place: int) -> bool:
        """Return True if the word at this index must be removed."""
        word = self._refusal_words[place]
        has_digit = len(word) >= _NUMBER_LENGTH_MIN and any(map(str.isdigit, word))
        if word in self._alone or (has_digit and word in self.common):
            return True
        starts = range(max(0, place - _RUN + 1), place + 1)
        return any(
            tuple(self._refusal_words[start : start + _RUN]) in self._found for start in starts
        )


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a value of the request, apart from media and names."""
    match value:
        case str():
            yield value
        case Struct():
            # `fields()` is avoided because it resolves types, which fails in some processes.
            for name in value.__struct_fields__:
                if name not in _NO_PROSE:
                    yield from _texts(getattr(value, name))
        case Mapping():
            for key, content in value.items():
                yield from _texts(key)
                yield from _texts(content)
        case tuple() | list():
            for content in value:
                yield from _texts(content)
        case _:
            pass


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with one mark in place of each sequence of adjacent spans."""
    stretches: list[tuple[int, int]] = []
    for start, end in spans:
        if stretches and not _WORD.search(text, stretches[-1][1], start):
            stretches[-1] = (stretches[-1][0], end)
        else:
            stretches.append((start, end))
    ends = [(0, 0), *stretches, (len(text), len(text))]
    return _WITHHELD.join(text[before[1] : after[0]] for before, after in pairwise(ends))
