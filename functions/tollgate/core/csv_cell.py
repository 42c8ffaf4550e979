"""Escapes text for CSV cells that a spreadsheet program opens."""

import re
from typing import Final

# Spreadsheet programs run a cell that begins with one of these characters as a formula (owasp.org,
# "CSV Injection", seen 2026-11-21).
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
# In locales with a decimal comma, spreadsheet programs split a cell at `;` and at line breaks, even
# inside quotes.
_ENDS_INSIDE: Final = re.compile(r"([;\r\n] *)(?=[=+@-])")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def csv_cell(text: str) -> str:
    """Escape text that a spreadsheet program would run as a formula; leave numbers unchanged."""
    if ";" in text or "\n" in text or "\r" in text:
        text = _ENDS_INSIDE.sub(r"\1'", text)
    if text.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text
