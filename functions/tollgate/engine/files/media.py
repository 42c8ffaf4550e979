"""Replaces URLs and file references in requests by the content, for providers that need
the bytes.
"""

import asyncio
import base64
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, Literal, assert_never
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from tollgate.core.buffer_budget import Buffered, take
from tollgate.core.content import (
    Audio,
    Document,
    FileReference,
    Image,
    InlineMedia,
    MediaSource,
    MediaUrl,
    ResultContent,
    Text,
    UserContent,
)
from tollgate.core.errors import BufferFull, ErrorCode, RequestError
from tollgate.core.files.media_types import detect_media_type, kind_of
from tollgate.core.files.picture_files import find_picture_fault
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.core.work.base import InputWork, Work
from tollgate.core.work.kinds import WORK_KINDS
from tollgate.engine.gateway import FileReader
from tollgate.engine.side_thread import Computations
from tollgate.providers.ports.base import FetchedMedia, MediaFetcher, Target

if TYPE_CHECKING:
    from tollgate.engine.documents.document_forms import DocumentForms

URLS_MAX: Final = 16
TOTAL_BYTES_MAX: Final = 40 * 1024 * 1024
# Audio formats that a conversation can contain.
SOUND_FORMATS: Final[Mapping[str, Literal["wav", "mp3", "webm"]]] = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/webm": "webm",
}


def replace_parts(
    request: GenerationRequest,
    change: Callable[[UserContent], UserContent],
    refuse: Callable[[str], RequestError],
) -> GenerationRequest:
    """Return a request with `change` applied to the parts of user and tool messages.

    Raises `refuse(…)` if a part of a tool result would become audio.
    """

    def change_result(part: ResultContent) -> ResultContent:
        changed = change(part)
        if isinstance(changed, Audio):
            raise refuse("have audio in a tool result")
        return changed

    def change_message(message: Message) -> Message:
        match message:
            case UserMessage(content=content):
                return replace(message, content=tuple(map(change, content)))
            case ToolMessage(content=content):
                return replace(message, content=tuple(map(change_result, content)))
            case SystemMessage() | AssistantMessage():
                return message
            case _:
                assert_never(message)

    messages, *further = (tuple(map(change_message, each)) for each in request.conversations)
    return replace(request, messages=messages, further=tuple(further))


async def load_file(files: FileReader | None, reference: FileReference) -> InlineMedia:
    """Return the content of a known file as base64; raise RequestError if the file was deleted."""
    content = await load_content(files, reference)
    return InlineMedia(
        media_type=reference.media_type or "",
        base64=base64.b64encode(content).decode("ascii"),
    )


async def load_content(files: FileReader | None, reference: FileReference) -> bytes:
    """Return the bytes of a known file; raise RequestError if the file was deleted."""
    content = None
    if files is not None and reference.place is not None:
        with refusing_excess(reference.field):
            take(reference.size_bytes or 0)
        content = await files.read(reference.place)
    if content is None:
        raise unknown_file(reference)
    return content


@contextmanager
def refusing_excess(field: str) -> Iterator[None]:
    """Convert BufferFull to RequestError if the content of the request itself is too large."""
    try:
        yield
    except BufferFull as full:
        if full.code is not ErrorCode.ANSWER_TOO_LARGE:
            raise
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"With the content of {field}, the request is too large.",
            param=field,
        ) from full


def unknown_file(reference: FileReference) -> RequestError:
    """Return the error for a file id that does not exist in the caller's workspace."""
    field = reference.field
    return RequestError(
        ErrorCode.FILE_NOT_FOUND, f"There is no file with the id in {field}.", param=field
    )


class RequestMedia:
    """The media of one request; each URL or file is read once for all attempts."""

    def __init__(
        self,
        fetcher: MediaFetcher,
        request: Work,
        files: FileReader | None,
        computations: Computations,
    ) -> None:
        self._fetcher = fetcher
        self._files = files
        self._computations = computations
        self.request = request
        self._fetched: dict[str, FetchedMedia] = {}
        self._read: dict[str, InlineMedia] = {}
        self._buffered = Buffered(TOTAL_BYTES_MAX)
        self.forms: DocumentForms | None = None
        """Versions of the request without documents; None if the gateway has read no documents."""

    async def inline(self, target: Target) -> Work:
        """Return the request with content in place of files, and of URLs that the provider cannot
        fetch.

        Raises RequestError for a refused URL, or for content of the wrong type.
        """
        request = self.request
        if isinstance(request, InputWork):
            return await self._inline_inputs(request, target)
        compute = self._computations.run
        if self.forms is not None:
            request = await compute(partial(self.forms.request_for, target))
        urls, files = await compute(partial(_missing, request, target))
        if not urls and not files:
            return request
        if files:
            await self._read_files(files)
        await self._fetch(urls)
        change = partial(self._part, urls=urls)
        return await compute(partial(replace_parts, request, change, self._refused))

    def is_whole_for(self, target: Target) -> bool:
        """Return True if a conversation has no file and no URL that must be fetched."""
        request = self.request
        if isinstance(request, InputWork) or self.forms is not None:
            return False
        urls, files = _missing(request, target)
        return not urls and not files

    async def load(self, documents: Collection[Document]) -> Mapping[MediaSource, InlineMedia]:
        """Return the documents by source, skipping URLs of other media; raise RequestError."""
        sources = {part.source for part in documents}
        files = [source for source in sources if isinstance(source, FileReference)]
        await self._read_files(files)
        await self._fetch({source.url for source in sources if isinstance(source, MediaUrl)})
        loaded: dict[MediaSource, InlineMedia] = {}
        for source in sources:
            match source:
                case InlineMedia():
                    loaded[source] = source
                case FileReference(id=id_):
                    loaded[source] = self._read[id_]
                case MediaUrl(url=url):
                    content = self._inline(url)
                    if kind_of(content.media_type) == "document":
                        loaded[source] = content
                case _:
                    assert_never(source)
        return loaded

    async def _inline_inputs(self, work: InputWork, target: Target) -> InputWork:
        # Of the APIs for images and videos, only the one with `reference_images` takes a URL.
        has_room = not WORK_KINDS[work.kind].field_of_media or (
            work.kind == "image" and target.dialect.images.edits == "reference_images"
        )
        if not work.addresses or (has_room and "image" in target.dialect.fetches_urls):
            return work
        await self._fetch(set(work.addresses))
        found = {url: self._inline(url) for url in work.addresses}
        for url in found:
            if fault := find_picture_fault(self._fetched[url].content):
                raise self._refused(f"have a URL whose content {fault}")
        return work.inline(found)

    async def _fetch(self, urls: set[str]) -> None:
        if len(urls) > URLS_MAX:
            raise self._refused(f"have more than {URLS_MAX} URLs")
        missing = sorted(urls - self._fetched.keys())
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    url: group.create_task(self._fetcher.fetch(url, buffered=self._buffered))
                    for url in missing
                }
        except ExceptionGroup as failures:
            with refusing_excess(WORK_KINDS[self.request.kind].field_with_media):
                raise failures.exceptions[0] from failures
        self._fetched |= {url: task.result() for url, task in tasks.items()}

    async def _read_files(self, references: Collection[FileReference]) -> None:
        """Read the files that have not been read yet."""
        if sum(each.size_bytes or 0 for each in references) > TOTAL_BYTES_MAX:
            raise self._refused(f"have files with more than {TOTAL_BYTES_MAX} bytes in total")
        for reference in references:
            if reference.id not in self._read:
                self._read[reference.id] = await load_file(self._files, reference)

    def _part(self, part: UserContent, urls: set[str]) -> UserContent:
        match part:
            case Image(source=FileReference(id=id_)) | Document(source=FileReference(id=id_)):
                return replace(part, source=self._read[id_])
            case Image(source=MediaUrl(url=url)) if url in urls:
                source = self._inline(url)
                if kind_of(source.media_type) != "image":
                    raise self._refused("have an image_url whose content is not an image")
                return replace(part, source=source)
            case Document(source=MediaUrl(url=url)) if url in urls:
                document = replace(part, filename=part.filename or _filename_in(url))
                return typed_by_content(document, self._inline(url))
            case Text() | Image() | Audio() | Document():
                return part
            case _:
                assert_never(part)

    def _inline(self, url: str) -> InlineMedia:
        fetched = self._fetched[url]
        found = detect_media_type(fetched.content, fetched.claimed_type)
        if found is None:
            raise self._refused("have a URL whose content has an unknown type")
        return InlineMedia(
            media_type=found, base64=base64.b64encode(fetched.content).decode("ascii")
        )

    def _refused(self, problem: str) -> RequestError:
        name = WORK_KINDS[self.request.kind].field_with_media
        return RequestError(ErrorCode.INVALID_REQUEST, f"{name} {problem}.", param=name)


def _missing(
    request: GenerationRequest, target: Target
) -> tuple[set[str], Collection[FileReference]]:
    """Return the URLs and files that an endpoint needs as bytes."""
    media = [
        part
        for message in chain.from_iterable(request.conversations)
        for part in message.content
        if isinstance(part, Image | Document)
    ]
    urls = {
        part.source.url
        for part in media
        if isinstance(part.source, MediaUrl) and not _fetches(target, part)
    }
    sources = [part.source for part in media]
    return urls, {each.id: each for each in sources if isinstance(each, FileReference)}.values()


def _filename_in(url: str) -> str | None:
    """Return the last part of a URL's path if it looks like a file name."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return name if "." in name and name.isprintable() and len(name) <= 255 else None


def typed_by_content(
    part: Document, source: InlineMedia | FileReference
) -> Image | Audio | Document:
    """Return a file as an image, audio or document part, according to its media type."""
    match source:
        case InlineMedia(media_type=type_) if type_ in SOUND_FORMATS:
            return Audio(source=source, format=SOUND_FORMATS[type_])
        case _ if kind_of(source.media_type or "") == "image":
            return Image(source=source, cache=part.cache)
        case _:
            return replace(part, source=source)


def _fetches(target: Target, part: Image | Document) -> bool:
    kind = "image" if isinstance(part, Image) else "file"
    return kind in target.dialect.fetches_urls
