"""A caller's options for reading documents."""

from typing import Literal

from msgspec import Struct

# The ways of reading a page: its text alone, or its text and a picture of it.
DocumentEngine = Literal["text", "images"]


class DocumentOptions(Struct, frozen=True, kw_only=True):
    """A caller's options for reading documents; None leaves an option to routing.yaml."""

    engine: DocumentEngine | Literal["native", "ocr"] | None = None
    """`native` leaves documents to models that read them; with other engines the gateway reads them
    even for such a model.

    `ocr` recognizes the text of every page, whatever text the file has.
    """
    pages_max: int | None = None
    """The number of pages that are read from the start of each document."""
    field: str = ""
    """The field of the request that has the options."""
