"""Media types of files besides PDF that providers' formats can carry."""

from collections.abc import Mapping
from typing import Final

# Media type → format name in Converse.
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
# Media types that Messages accepts; all except PDF are sent as plain-text documents.
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
