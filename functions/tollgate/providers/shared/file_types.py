"""The types of files, beside PDF, that providers' formats have room for."""

from collections.abc import Mapping
from typing import Final

# The names that Converse has for them.
CONVERSE_FILES: Final[Mapping[str, str]] = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
    "text/plain": "txt",
}
# What Messages takes as a document of plain text.
MESSAGES_FILES: Final = frozenset(
    {
        "application/json",
        "application/pdf",
        "text/csv",
        "text/html",
        "text/markdown",
        "text/plain",
        "text/xml",
    }
)
