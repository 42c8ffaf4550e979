"""Checks office files, which are zip archives of XML, before a library unpacks them."""

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Final
from xml.etree.ElementTree import ParseError

from lxml.etree import LxmlError  # type: ignore[import-untyped]  # it ships no types

from tollgate.core.documents.reading import DocumentFault, UnreadableDocument

# Maximum unpacked size of all entries, and of those with XML; an archive lists each entry's size.
UNPACKED_BYTES_MAX: Final = 128 * 1024 * 1024
XML_BYTES_MAX: Final = 32 * 1024 * 1024
_ENTRIES_MAX: Final = 5_000
# Office programs compress XML to about a twentieth of its size; an entry above this ratio counts as
# a zip bomb. Small entries may have any ratio.
_RATIO_MAX: Final = 200
_RATIO_BYTES_MIN: Final = 1024 * 1024
_XML: Final = (".xml", ".rels")
# Errors that the libraries raise for malformed files.
_THEIR_ERRORS: Final = (
    AttributeError,
    EOFError,
    LookupError,
    LxmlError,
    NotImplementedError,
    OSError,
    ParseError,
    RecursionError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def check_archive(content: bytes) -> None:
    """Raise UnreadableDocument if a file is not an archive, is encrypted or unpacks to too much."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise UnreadableDocument(DocumentFault.MALFORMED) from error
    _require_at_most(sum(entry.file_size for entry in entries), UNPACKED_BYTES_MAX)
    _require_at_most(
        sum(entry.file_size for entry in entries if entry.filename.lower().endswith(_XML)),
        XML_BYTES_MAX,
    )
    for entry in entries:
        if entry.file_size > _RATIO_BYTES_MIN:
            _require_at_most(entry.file_size, _RATIO_MAX * entry.compress_size)
    if len(entries) > _ENTRIES_MAX:
        raise UnreadableDocument(DocumentFault.TOO_COMPLEX)
    if any(entry.flag_bits & 1 for entry in entries):
        raise UnreadableDocument(DocumentFault.ENCRYPTED)


def _require_at_most(unpacked: int, limit: int) -> None:
    if unpacked > limit:
        raise UnreadableDocument(DocumentFault.TOO_COMPLEX, amount=unpacked, most=limit)


@contextmanager
def malformed_faults() -> Iterator[None]:
    """Convert the libraries' errors to UnreadableDocument."""
    try:
        yield
    except _THEIR_ERRORS as error:
        raise UnreadableDocument(DocumentFault.MALFORMED) from error
