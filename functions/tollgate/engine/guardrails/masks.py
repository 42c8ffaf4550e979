"""Replaces findings with masks, and the masks in an answer with the original texts."""

import re
from collections import Counter
from typing import Final

_MASK: Final = re.compile(r"\[[a-z][a-z0-9_]{0,31}_[0-9]{1,6}\]")
MASK_CHARACTERS_MAX: Final = 41


class Masks:
    """Masks of one generation; the same text always has the same mask."""

    def __init__(self) -> None:
        self._masks: dict[str, str] = {}
        self._numbers: Counter[str] = Counter()
        self._originals: dict[str, str] = {}
        self._issued: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._originals)

    def mask(self, finding: str, original: str, *, restores: bool) -> str:
        """Return the mask for a text, such as `[email_1]`."""
        mask = self._masks.get(original)
        if mask is None:
            self._numbers[finding] += 1
            mask = self._masks[original] = f"[{finding}_{self._numbers[finding]}]"
            self._issued.add(mask)
        if restores:
            self._originals[mask] = original
        return mask

    def find_unmasked(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of a text that are outside all masks of this generation."""
        spans, place = [], 0
        for mask in _MASK.finditer(text):
            if mask.group() in self._issued:
                spans.append((place, mask.start()))
                place = mask.end()
        return [*spans, (place, len(text))]

    def restore(self, text: str) -> str:
        """Return the text with the originals in place of restorable masks."""
        return _MASK.sub(lambda mask: self._originals.get(mask.group(), mask.group()), text)


def complete_masks(text: str) -> int:
    """Return the length of an unfinished text without any incomplete mask at its end."""
    begin = text.rfind("[", max(0, len(text) - MASK_CHARACTERS_MAX))
    return len(text) if begin < 0 or "]" in text[begin:] else begin
