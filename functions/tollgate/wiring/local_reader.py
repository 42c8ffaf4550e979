"""Wires the local reader of documents, which is not packaged with the functions."""

from tollgate.core.documents.reading import DocumentReader
from tollgate.reading.child_reader import ChildReader


def wire_local_reader() -> DocumentReader:
    """Return the reader that starts a process for each document."""
    return ChildReader()
