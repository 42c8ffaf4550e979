"""Wires the reader of documents of a machine, which the functions do not carry."""

from tollgate.core.documents.reading import DocumentReader
from tollgate.reading.child_reader import ChildReader


def wire_local_reader() -> DocumentReader:
    """Make the reader that starts a process for each document."""
    return ChildReader()
