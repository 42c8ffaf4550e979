"""Escaping of text for CSV cells that a spreadsheet opens."""

import re
from typing import Final

# A spreadsheet runs a cell that begins with one of these characters as a formula (owasp.org, "CSV
# Injection", seen 2026-11-21).
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
# In locales with a decimal comma, spreadsheets split a cell at `;` and at line breaks even inside
# quotes.
_ENDS_INSIDE: Final = re.compile(r"([;\r\n] *)(?=[=+@-])")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def csv_cell(text: str) -> str:
    """Escape text that a spreadsheet would run as a formula; leave numbers as they are."""
    if ";" in text or "\n" in text or "\r" in text:
        text = _ENDS_INSIDE.sub(r"\1'", text)
    if text.startswith(_FORMULA_STARTS) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text
