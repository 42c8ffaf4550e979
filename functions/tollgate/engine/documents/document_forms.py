"""Rewrites requests so that extracted text and page images replace documents."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import (
    Audio,
    Document,
    Image,
    InlineMedia,
    MediaSource,
    Text,
)
from tollgate.core.documents.known_files import KnownFile
from tollgate.core.documents.reading import DocumentPage
from tollgate.core.files.media_types import PDF
from tollgate.core.records.generation import Fee
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.engine.documents.recognition import KnownDocument, Recognition, takes_pictures
from tollgate.providers.ports.base import Target
from tollgate.routing.planning.document_fees import page_fees
from tollgate.routing.planning.prompt_size import BYTES_PER_TOKEN_MIN, PromptSize
from tollgate.routing.plugin_sections import PdfSection

# Limit on the extracted content of one document that is returned to the caller. More would not fit
# into the caller's next request.
RETURNED_BYTES_MAX: Final = 2_000_000
_UNNAMED: Final = "document"
# A printed page has about 3,000 bytes.
_RECOGNIZED_TOKENS_TYPICAL: Final = 750


class PageCounts(Struct, frozen=True, kw_only=True):
    """Numbers of PDF pages that an endpoint gets, counted separately for each form in which pages
    are sent.
    """

    text: int = 0
    pictured: int = 0
    recognized: int = 0
    """Pages whose text comes from OCR; the other fields do not count them."""


class DocumentForms:
    """Versions of one request for endpoints that differ in the files they read and in whether they
    accept images.

    With `always`, documents are replaced even for endpoints that read them. `recognition` supplies
    the text of scanned pages; OCR runs before the first attempt that needs it.
    """

    def __init__(
        self,
        request: GenerationRequest,
        known: Mapping[MediaSource, KnownDocument],
        *,
        section: PdfSection,
        always: bool,
        recognition: Recognition | None = None,
    ) -> None:
        self._request = request
        self._known = known
        self._section = section
        self._always = always
        self._recognition = recognition

    async def recognize_for(self, target: Target) -> None:
        """Run OCR if an endpoint needs it and it has not run yet; raise GatewayError if the service
        fails.
        """
        if self._recognition is not None and self._is_recognized(target):
            await self._recognition.run()

    def request_for(self, target: Target) -> GenerationRequest:
        """Return the version of the request for an endpoint."""
        replaced = self._replaced(target)
        if not replaced:
            return self._request
        sees = takes_pictures(target)
        messages, *further = (
            tuple(_expand(message, replaced, sees=sees) for message in messages)
            for messages in self._request.conversations
        )
        return replace(
            self._request,
            messages=messages,
            further=tuple(further),
            size_bytes=self._size(replaced, sees=sees),
        )

    def pages_for(self, target: Target) -> PageCounts:
        """Count the PDF pages that an endpoint gets; a document that occurs twice counts once."""
        pages, recognized = list[DocumentPage](), 0
        for source in self._replaced(target):
            known, scanned = self._known[source], self._scanned(target, source)
            recognized += len(scanned)
            if known.media_type == PDF and known.is_new:
                pages += [page for page in known.read.pages if page.number not in scanned]
        pictured = sum(takes_pictures(target) and page.picture is not None for page in pages)
        return PageCounts(text=len(pages) - pictured, pictured=pictured, recognized=recognized)

    def sizes_for(self, target: Target) -> tuple[PromptSize, ...]:
        """Return the prompt sizes at an endpoint, including text that OCR may add."""
        sizes = PromptSize.of_each(self.request_for(target))
        if self._recognition is None:
            return sizes
        pages = sum(
            len(self._scanned(target, part.source))
            for message in chain.from_iterable(self._request.conversations)
            for part in message.content
            if isinstance(part, Document)
        )
        most = -(-self._recognition.section.text_bytes_max // BYTES_PER_TOKEN_MIN)
        return tuple(
            replace(
                size,
                estimate=size.estimate + pages * min(most, _RECOGNIZED_TOKENS_TYPICAL),
                most=size.most + pages * most,
            )
            for size in sizes
        )

    def fees_for(self, target: Target) -> tuple[Fee, ...]:
        """Return the fees for the pages that an endpoint gets."""
        pages = self.pages_for(target)
        return page_fees(
            self._section,
            text=pages.text,
            pictured=pages.pictured,
            recognized=pages.recognized,
        )

    def newly_read(self, target: Target) -> tuple[KnownFile, ...]:
        """Return the PDFs read for this request, which the caller may send back to avoid a second
        fee.
        """
        return tuple(
            KnownFile(
                sha256=known.sha256,
                name=known.name,
                pages=known.read.pages,
                pages_total=known.read.pages_total,
            )
            for known in self._replaced(target).values()
            if known.media_type == PDF
            and known.is_new
            and _returned_bytes(known) <= RETURNED_BYTES_MAX
        )

    def shows(self, target: Target) -> bool:
        """Return True if an endpoint gets at least some content from every document."""
        if self._is_recognized(target):
            return self._recognition is not None and self._recognition.fits
        return takes_pictures(target) or all(
            known.has_text for known in self._replaced(target).values()
        )

    def _is_recognized(self, target: Target) -> bool:
        return any(self._scanned(target, source) for source in self._replaced(target))

    def _scanned(self, target: Target, source: MediaSource) -> frozenset[int]:
        """Return the numbers of the pages whose text comes from OCR for an endpoint."""
        recognition = self._recognition
        if recognition is None or not recognition.serves(target):
            return frozenset()
        return recognition.pages[source] if source in self._replaced(target) else frozenset()

    def _replaced(self, target: Target) -> Mapping[MediaSource, KnownDocument]:
        recognition = self._recognition
        known = self._known
        if recognition is not None and recognition.serves(target):
            known = {**known, **recognition.found}
        return {
            source: each
            for source, each in known.items()
            if self._always or not target.reads_file(each.media_type)
        }

    def _size(self, replaced: Mapping[MediaSource, KnownDocument], *, sees: bool) -> int:
        """Return the size of the request body with pages in place of the documents."""
        size = self._request.size_bytes
        for message in chain.from_iterable(self._request.conversations):
            for part in message.content:
                if not isinstance(part, Document) or part.source not in replaced:
                    continue
                if isinstance(part.source, InlineMedia):
                    size -= len(part.source.base64)
                pages = replaced[part.source].read.pages
                size += sum(len(page.text.encode()) for page in pages)
                if sees:
                    size += sum(len(page.picture.base64) for page in pages if page.picture)
        return max(0, size)


def _returned_bytes(known: KnownDocument) -> int:
    return sum(
        len(page.text.encode()) if page.text or page.picture is None else len(page.picture.base64)
        for page in known.read.pages
    )


def _expand(
    message: Message, replaced: Mapping[MediaSource, KnownDocument], *, sees: bool
) -> Message:
    match message:
        case UserMessage(content=content):
            parts = chain.from_iterable(_parts(part, replaced, sees=sees) for part in content)
            return replace(message, content=tuple(parts))
        case ToolMessage(content=content):
            results = chain.from_iterable(_parts(part, replaced, sees=sees) for part in content)
            return replace(message, content=tuple(results))
        case SystemMessage() | AssistantMessage():
            return message
        case _:
            assert_never(message)


def _parts(
    part: Text | Image | Audio | Document,
    replaced: Mapping[MediaSource, KnownDocument],
    *,
    sees: bool,
) -> Iterator[Text | Image | Audio | Document]:
    """Yield the pages of a document that was read; yield every other part unchanged."""
    if not isinstance(part, Document) or part.source not in replaced:
        yield part
        return
    pages = list(_pages(part, replaced[part.source], sees=sees))
    yield from pages[:-1]
    # The cache mark moves to the last part, so that the whole document is cached.
    yield replace(pages[-1], cache=part.cache)


def _pages(part: Document, known: KnownDocument, *, sees: bool) -> Iterator[Text | Image]:
    read = known.read
    name = part.filename or read.title or _UNNAMED
    if known.media_type != PDF:
        text = "\n\n".join(page.text for page in read.pages)
        yield Text(text=f"File {name}:\n\n{text}\n")
        return
    note = "" if len(read.pages) == read.pages_total else f", of which {len(read.pages)} follow"
    pending_text = f"File {name}, {_count(read.pages_total)}{note}:\n"
    for page in read.pages:
        pending_text += f"\nPage {page.number}:\n{_text(page, sees=sees)}\n"
        if sees and page.picture is not None:
            yield Text(text=pending_text)
            yield Image(source=page.picture)
            pending_text = ""
    if pending_text:
        yield Text(text=pending_text)


def _text(page: DocumentPage, *, sees: bool) -> str:
    if page.text or (sees and page.picture):
        return page.text
    return "(no text)"


def _count(pages: int) -> str:
    return "1 page" if pages == 1 else f"{pages:,} pages"
