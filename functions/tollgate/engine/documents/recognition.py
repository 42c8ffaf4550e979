"""The recognition of scanned pages, which costs the operator money: run once, after the hold."""

import asyncio
from collections.abc import Mapping
from typing import Final, Self

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import InlineMedia, MediaSource
from tollgate.core.documents.reading import (
    DocumentPage,
    ReadDocument,
    RecognitionFailed,
    TextRecognizer,
)
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.files.media_types import PDF
from tollgate.providers.ports.base import Target
from tollgate.routing.plugin_sections import OcrSection

# Replaces an empty text, so that the page is not recognized again when the caller returns it.
_NOTHING: Final = "(nothing was recognized)"
_CUT: Final = " (cut)"


class KnownDocument(Struct, frozen=True, kw_only=True):
    """A document of a request, as it was read."""

    content: InlineMedia
    read: ReadDocument
    sha256: str
    name: str = ""
    is_new: bool = True
    """False if the caller returned the pages of an earlier answer, which are free of charge."""

    @property
    def media_type(self) -> str:
        """The media type of the content."""
        return self.content.media_type

    @property
    def textless(self) -> frozenset[int]:
        """The numbers of the pages of a PDF that have no text."""
        if self.media_type != PDF:
            return frozenset()
        return frozenset(page.number for page in self.read.pages if not page.text)

    def without_text(self) -> Self:
        """Return a new PDF without text, so that all pages are recognized; others unchanged."""
        if self.media_type != PDF or not self.is_new:
            return self
        pages = tuple(replace(page, text="") for page in self.read.pages)
        return replace(self, read=replace(self.read, pages=pages))

    @property
    def has_text(self) -> bool:
        """True if a model that takes no pictures gets some of the document's content."""
        return any(page.text for page in self.read.pages)


def takes_pictures(target: Target) -> bool:
    """Return whether an endpoint takes pictures."""
    return "image" in target.input


class Recognition:
    """The recognition of the pages without text in one request.

    `everywhere` recognizes them even for models that take pictures.
    """

    def __init__(
        self,
        recognizer: TextRecognizer,
        section: OcrSection,
        known: Mapping[MediaSource, KnownDocument],
        *,
        everywhere: bool,
    ) -> None:
        self.section = section
        self.pages = {source: each.textless for source, each in known.items()}
        self.found: dict[MediaSource, KnownDocument] = {}
        """The documents with recognized text; empty before `run`."""
        self._recognizer = recognizer
        self._known = known
        self._everywhere = everywhere

    @property
    def pages_total(self) -> int:
        """The number of pages to recognize."""
        return sum(map(len, self.pages.values()))

    @property
    def fits(self) -> bool:
        """True if there are no more pages than are recognized for one request."""
        return self.pages_total <= self.section.pages_max

    def serves(self, target: Target) -> bool:
        """Return whether an endpoint that the gateway reads for gets recognized text."""
        return self._everywhere or not takes_pictures(target)

    async def run(self) -> None:
        """Find the text of all pages, unless it is known.

        Raises GatewayError if the service fails, which ends the request: no endpoint is at fault,
        so that a retry or fallback would not help, and recognized pages are paid for.
        """
        if self.found:
            return
        scanned = [source for source, pages in self.pages.items() if pages]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {source: group.create_task(self._recognize(source)) for source in scanned}
        except ExceptionGroup as failures:
            failure = failures.exceptions[0]
            if isinstance(failure, RecognitionFailed):
                failure = GatewayError(
                    ErrorCode.PROVIDER_UNAVAILABLE,
                    f"Scanned pages could not be recognized: {failure}.",
                )
            raise failure from failures
        self.found = {source: task.result() for source, task in tasks.items()}

    async def _recognize(self, source: MediaSource) -> KnownDocument:
        known = self._known[source]
        scanned = [page for page in known.read.pages if page.number in self.pages[source]]
        texts = await self._recognizer.recognize(known.content, scanned)
        pages = tuple(
            DocumentPage(number=page.number, text=self._text(texts[page.number]))
            if page.number in texts
            else page
            for page in known.read.pages
        )
        return replace(known, read=replace(known.read, pages=pages), is_new=True)

    def _text(self, text: str) -> str:
        limit = self.section.text_bytes_max
        content = text.strip().encode()
        if len(content) > limit:
            return content[: limit - len(_CUT)].decode(errors="ignore") + _CUT
        return content.decode() or _NOTHING
