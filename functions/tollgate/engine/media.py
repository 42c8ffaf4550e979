"""Media behind URLs, fetched and inlined for providers that do not fetch for themselves."""

import asyncio
import base64
from itertools import chain
from typing import Final, assert_never

from msgspec.structs import replace

from tollgate.core.content import (
    Audio,
    Document,
    Image,
    InlineMedia,
    MediaUrl,
    ResultContent,
    Text,
    UserContent,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.media_types import detect_media_type, kind_of
from tollgate.core.request import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.core.work import InputWork, Work
from tollgate.ingress.base import ParsedWork
from tollgate.providers.base import FetchedMedia, MediaFetcher, Target

URLS_MAX: Final = 16
TOTAL_BYTES_MAX: Final = 40 * 1024 * 1024


async def fetch_awaited(fetcher: MediaFetcher, parsed: ParsedWork) -> ParsedWork:
    """Return a request with the media that it names by URL, by which its work is measured.

    This is before any money is held: the hold is of the size that is found.
    """
    awaited = parsed.awaits
    if awaited is None:
        return parsed
    media = await fetcher.fetch(awaited.url, field=awaited.field, bytes_max=awaited.bytes_max)
    return replace(parsed, request=awaited.complete(media.content), awaits=None)


class RequestMedia:
    """The media of one request; each URL is fetched once for all attempts."""

    def __init__(self, fetcher: MediaFetcher, request: Work) -> None:
        self._fetcher = fetcher
        self.request = request
        self._fetched: dict[str, FetchedMedia] = {}

    async def inline_urls(self, target: Target) -> Work:
        """Return the request with bytes in place of URLs that the target's provider cannot fetch.

        Raises RequestError for a URL that the guard refuses, or whose content has the wrong type.
        """
        request = self.request
        if isinstance(request, InputWork):
            return await self._inline_inputs(request, target)
        urls = {
            part.source.url
            for message in chain.from_iterable(request.conversations)
            for part in message.content
            if isinstance(part, Image | Document)
            and isinstance(part.source, MediaUrl)
            and not _fetches(target, part)
        }
        if not urls:
            return request
        await self._fetch(urls)
        messages, *further = (
            tuple(self._message(message, urls) for message in conversation)
            for conversation in request.conversations
        )
        return replace(request, messages=messages, further=tuple(further))

    async def _inline_inputs(self, work: InputWork, target: Target) -> InputWork:
        # Forms of edits and bodies of other families have no room for an address.
        has_room = work.kind != "image" or target.dialect.images.edits == "reference_images"
        if not work.addresses or (has_room and "image" in target.dialect.fetches_urls):
            return work
        # Imported with the first such request: most processes serve none.
        from tollgate.core.picture_files import find_picture_fault

        await self._fetch(set(work.addresses))
        found = {url: self._inline(url) for url in work.addresses}
        for url in found:
            if fault := find_picture_fault(self._fetched[url].content):
                raise self._refused(f"have a URL whose content {fault}")
        return work.inline(found)

    async def _fetch(self, urls: set[str]) -> None:
        if len(urls) > URLS_MAX:
            raise self._refused(f"have more than {URLS_MAX} URLs to fetch")
        missing = sorted(urls - self._fetched.keys())
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {url: group.create_task(self._fetcher.fetch(url)) for url in missing}
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures
        self._fetched |= {url: task.result() for url, task in tasks.items()}
        if sum(len(media.content) for media in self._fetched.values()) > TOTAL_BYTES_MAX:
            raise self._refused(f"have more than {TOTAL_BYTES_MAX} bytes behind their URLs")

    def _message(self, message: Message, urls: set[str]) -> Message:
        match message:
            case UserMessage():
                shown = tuple(self._part(part, urls) for part in message.content)
                return replace(message, content=shown)
            case ToolMessage():
                returned = tuple(self._result(part, urls) for part in message.content)
                return replace(message, content=returned)
            case SystemMessage() | AssistantMessage():
                return message
            case _:
                assert_never(message)

    def _result(self, part: ResultContent, urls: set[str]) -> ResultContent:
        inlined = self._part(part, urls)
        if isinstance(inlined, Audio):
            raise self._refused("have audio in the result of a tool")
        return inlined

    def _part(self, part: UserContent, urls: set[str]) -> UserContent:
        match part:
            case Image(source=MediaUrl(url=url)) if url in urls:
                source = self._inline(url)
                if kind_of(source.media_type) != "image":
                    raise self._refused("have an image_url whose content is not an image")
                return replace(part, source=source)
            case Document(source=MediaUrl(url=url)) if url in urls:
                return _typed_by_content(part, self._inline(url))
            case Text() | Image() | Audio() | Document():
                return part
            case _:
                assert_never(part)

    def _inline(self, url: str) -> InlineMedia:
        fetched = self._fetched[url]
        found = detect_media_type(fetched.content, fetched.claimed_type)
        if found is None:
            raise self._refused("have a URL whose content is of no known type")
        return InlineMedia(
            media_type=found, base64=base64.b64encode(fetched.content).decode("ascii")
        )

    def _refused(self, what: str) -> RequestError:
        request = self.request
        name = request.field_of_inputs if isinstance(request, InputWork) else "messages"
        return RequestError(ErrorCode.INVALID_REQUEST, f"{name} {what}.", param=name)


def _typed_by_content(part: Document, source: InlineMedia) -> Image | Audio | Document:
    """Return a file as the kind of part that its content is: image, audio or document."""
    match source.media_type:
        case "audio/wav":
            return Audio(source=source, format="wav")
        case "audio/mpeg":
            return Audio(source=source, format="mp3")
        case "audio/webm":
            return Audio(source=source, format="webm")
        case type_ if kind_of(type_) == "image":
            return Image(source=source, cache=part.cache)
        case _:
            return replace(part, source=source)


def _fetches(target: Target, part: Image | Document) -> bool:
    kind = "image" if isinstance(part, Image) else "file"
    return kind in target.dialect.fetches_urls
