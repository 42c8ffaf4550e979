"""The forms of a request whose documents the gateway has read: text, and pictures of pages."""

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
from tollgate.core.documents import DocumentPage, ReadDocument
from tollgate.core.generation import Fee
from tollgate.core.known_files import KnownFile
from tollgate.core.media_types import PDF
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.base import Target
from tollgate.routing.planning.document_fees import page_fees
from tollgate.routing.plugin_sections import PdfSection

# Of the annotation on one document; a larger one would not fit into the next request.
TOLD_BYTES_MAX: Final = 2_000_000
_UNNAMED: Final = "document"


class KnownDocument(Struct, frozen=True, kw_only=True):
    """A document of a request, as it was read."""

    media_type: str
    read: ReadDocument
    sha256: str
    name: str = ""
    is_new: bool = True
    """False if an earlier answer told of it, so that it costs no page."""

    @property
    def has_text(self) -> bool:
        """True unless a model that does not see gets nothing of it."""
        return any(page.text for page in self.read.pages)


class PageCounts(Struct, frozen=True, kw_only=True):
    """The pages of PDFs that a form of a request has."""

    text: int = 0
    pictured: int = 0


class DocumentForms:
    """The forms of one request, by what an endpoint reads and sees.

    `always` replaces documents for endpoints that would read them, too.
    """

    def __init__(
        self,
        request: GenerationRequest,
        known: Mapping[MediaSource, KnownDocument],
        *,
        section: PdfSection,
        always: bool,
    ) -> None:
        self._request = request
        self._known = known
        self._section = section
        self._always = always

    def request_for(self, target: Target) -> GenerationRequest:
        """Return the request as an endpoint gets it."""
        replaced = self._replaced(target)
        if not replaced:
            return self._request
        sees = _sees(target)
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
        """Return the pages that an endpoint gets in place of PDFs, each document counted once."""
        pages = [
            page
            for known in self._replaced(target).values()
            if known.media_type == PDF and known.is_new
            for page in known.read.pages
        ]
        pictured = sum(_sees(target) and page.picture is not None for page in pages)
        return PageCounts(text=len(pages) - pictured, pictured=pictured)

    def fees_for(self, target: Target) -> tuple[Fee, ...]:
        """Return the fees for the pages that an endpoint gets."""
        pages = self.pages_for(target)
        return page_fees(self._section, text=pages.text, pictured=pages.pictured)

    def newly_read(self, target: Target) -> tuple[KnownFile, ...]:
        """Return the PDFs that were read for an endpoint, for its caller to send back."""
        return tuple(
            KnownFile(
                sha256=known.sha256,
                name=known.name,
                pages=known.read.pages,
                pages_total=known.read.pages_total,
            )
            for known in self._replaced(target).values()
            if known.media_type == PDF and known.is_new and _told_bytes(known) <= TOLD_BYTES_MAX
        )

    def shows(self, target: Target) -> bool:
        """Return whether an endpoint gets something of each document."""
        return _sees(target) or all(known.has_text for known in self._replaced(target).values())

    def _replaced(self, target: Target) -> Mapping[MediaSource, KnownDocument]:
        return {
            source: known
            for source, known in self._known.items()
            if self._always or not target.reads_file(known.media_type)
        }

    def _size(self, replaced: Mapping[MediaSource, KnownDocument], *, sees: bool) -> int:
        """Return the size that a body with the pages in place of the documents would have."""
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


def _told_bytes(known: KnownDocument) -> int:
    return sum(
        len(page.text.encode()) if page.text or page.picture is None else len(page.picture.base64)
        for page in known.read.pages
    )


def _sees(target: Target) -> bool:
    return "image" in target.input


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
    """Yield the parts that stand for a part: of a document its pages, of any other itself."""
    if not isinstance(part, Document) or part.source not in replaced:
        yield part
        return
    shown = list(_pages(part, replaced[part.source], sees=sees))
    yield from shown[:-1]
    # A prompt is cached up to the end of its document.
    yield replace(shown[-1], cache=part.cache)


def _pages(part: Document, known: KnownDocument, *, sees: bool) -> Iterator[Text | Image]:
    read = known.read
    name = part.filename or read.title or _UNNAMED
    if known.media_type != PDF:
        text = "\n\n".join(page.text for page in read.pages)
        yield Text(text=f"File {name}:\n\n{text}\n")
        return
    shown = "" if len(read.pages) == read.pages_total else f", of which {len(read.pages)} follow"
    waiting = f"File {name}, {_count(read.pages_total)}{shown}:\n"
    for page in read.pages:
        waiting += f"\nPage {page.number}:\n{_text(page, sees=sees)}\n"
        if sees and page.picture is not None:
            yield Text(text=waiting)
            yield Image(source=page.picture)
            waiting = ""
    if waiting:
        yield Text(text=waiting)


def _text(page: DocumentPage, *, sees: bool) -> str:
    if page.text or (sees and page.picture):
        return page.text
    return "(no text)"


def _count(pages: int) -> str:
    return "1 page" if pages == 1 else f"{pages:,} pages"
