"""Resolves escapes in text, so that a search finds words however they are escaped."""

import re
import unicodedata
from typing import Final

# An escape may itself be escaped: JSON within JSON within a URL.
_ROUNDS_MAX: Final = 4
_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|U([0-9A-Fa-f]{8})|([nrt])|([\"'/]))"
)
_BACKSLASHES: Final = re.compile(r"\\{2,}")
_HALF: Final = re.compile("[\ud800-\udfff]")
_PERCENT: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ENTITY: Final = re.compile(r"&[#A-Za-z]")
# Invisible characters: controls other than white space, soft hyphens, and marks for width and
# direction. Lone surrogates are included because no encoding accepts them.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
)


def resolve_escapes(text: str) -> str:
    """Return text in Unicode NFKC, without escapes (JSON, URL, HTML) or invisible characters."""
    for _ in range(_ROUNDS_MAX):
        resolved = _resolve_once(text)
        if resolved == text:
            break
        text = resolved
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _UNSEEN.sub("", text)


def _resolve_once(text: str) -> str:
    if "\\" in text:
        text = _ESCAPE.sub(_character, _BACKSLASHES.sub(r"\\", text))
    if _HALF.search(text):
        # JSON escapes a character beyond U+FFFF as a surrogate pair.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "%" in text:
        text = _PERCENT.sub(_octets, text)
    if _ENTITY.search(text):
        # Imported here, because most processes never need the large table of entities.
        from html import unescape

        text = unescape(text)
    return text


def _octets(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode(errors="replace")


def _character(found: re.Match[str]) -> str:
    """Return the character of an escape; a space for an escaped line break or tab."""
    for digits in found.group(1, 2, 3):
        if digits is not None:
            code = int(digits, 16)
            return chr(code) if code <= 0x10FFFF else found[0]
    return " " if found[4] else found[5]
