"""Runs OCR on scanned pages, once per request and after the hold, because OCR costs money."""

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

# This text stands for an empty result, so that the page is not sent to OCR again when the caller
# returns it.
_NOTHING: Final = "(nothing was recognized)"
_CUT: Final = " (cut)"


class KnownDocument(Struct, frozen=True, kw_only=True):
    """A document in a request, with its extracted pages."""

    content: InlineMedia
    read: ReadDocument
    sha256: str
    name: str = ""
    is_new: bool = True
    """False if the caller sent back pages from an earlier answer, which are free."""

    @property
    def media_type(self) -> str:
        """Media type of the content."""
        return self.content.media_type

    @property
    def textless(self) -> frozenset[int]:
        """Numbers of the PDF pages without text."""
        if self.media_type != PDF:
            return frozenset()
        return frozenset(page.number for page in self.read.pages if not page.text)

    def without_text(self) -> Self:
        """Return the document; if it is a newly read PDF, without text, so that OCR runs on all
        pages.
        """
        if self.media_type != PDF or not self.is_new:
            return self
        pages = tuple(replace(page, text="") for page in self.read.pages)
        return replace(self, read=replace(self.read, pages=pages))

    @property
    def has_text(self) -> bool:
        """True if any page has text, so that even a model without image input gets some content."""
        return any(page.text for page in self.read.pages)


def takes_pictures(target: Target) -> bool:
    """Return True if an endpoint takes images."""
    return "image" in target.input


class Recognition:
    """OCR for pages without text; if `everywhere` is set, also for models that accept images."""

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
        """Documents with the text from OCR; empty before `run`."""
        self._recognizer = recognizer
        self._known = known
        self._everywhere = everywhere

    @property
    def pages_total(self) -> int:
        """Number of pages without text."""
        return sum(map(len, self.pages.values()))

    @property
    def fits(self) -> bool:
        """True if the number of pages is within the limit for one request."""
        return self.pages_total <= self.section.pages_max

    def serves(self, target: Target) -> bool:
        """Return True if an endpoint gets OCR text for documents that the gateway reads."""
        return self._everywhere or not takes_pictures(target)

    async def run(self) -> None:
        """Run OCR on all pages without text; a second call does nothing.

        Raises GatewayError, which ends the request, if the service fails. A retry or fallback would
        not help, because no endpoint is at fault, and the pages that OCR has already finished must
        be paid for.
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
