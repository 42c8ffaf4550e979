"""Rewrites text in plain ASCII as far as possible, so that patterns match disguised text.

Full-width and other compatibility forms become their plain form (NFKC), digits of all scripts
become 0 to 9, letters of other alphabets become the Latin letters that they resemble, and
zero-width characters are left out.
"""

import unicodedata
from functools import lru_cache
from typing import Final

from msgspec import Struct

# Unicode's general categories of characters to leave out: format characters, such as zero-width
# spaces, and combining marks.
_INVISIBLE: Final = frozenset({"Cf", "Mn", "Me"})
# Cyrillic and Greek letters that look like Latin ones, and dashes.
_LOOKALIKES: Final = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсухіјѕԁһӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρτ‐‑‒–—−",
    "ABESIJKMHOPCTYXaeopcyxijsdhlABEZHIKMNOPTYXovpt------",
)


class PlainText(Struct, frozen=True):
    """Text in plain characters, with their places in the original; None if nothing changed."""

    text: str
    places: list[int] | None = None

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """Return the part of the original from which characters `begin` to `end` come."""
        if self.places is None or begin == end:
            return begin, end
        return self.places[begin], self.places[end - 1] + 1


def to_plain(text: str) -> PlainText:
    """Return the text in plain characters."""
    if text.isascii():
        return PlainText(text)
    plain: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for written in _plain(character):
            plain.append(written)
            places.append(place)
    return PlainText("".join(plain), places)


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    if character.isascii():
        return character
    if unicodedata.category(character) in _INVISIBLE:
        return ""
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return str(digit)
    shown = unicodedata.normalize("NFKC", character).translate(_LOOKALIKES)
    # Letters with accents lose them; a compatibility form may be several characters.
    return "".join(
        each
        for each in unicodedata.normalize("NFKD", shown)
        if unicodedata.category(each) not in _INVISIBLE
    )
