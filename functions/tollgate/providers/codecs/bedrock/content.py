"""Content blocks for Converse, which accepts media only as bytes and not by URL."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, assert_never

from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    Image,
    InlineMedia,
    MediaSource,
    ResultContent,
    Text,
    UserContent,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.wire_format import CONVERSE_FILES

_IMAGE_FORMATS: Final = {
    "image/gif": "gif",
    "image/jpeg": "jpeg",
    "image/png": "png",
    "image/webp": "webp",
}
_AUDIO_FORMATS: Final = {"wav": "wav", "mp3": "mp3", "pcm16": "pcm", "webm": "webm"}
_DOCUMENT_TEXT: Final = "See the attached document."


class Blocks:
    """Creates the blocks of one request, and gives each document a unique name."""

    def __init__(self, *, caches: bool) -> None:
        self._caches = caches
        self._documents = 0

    def user_blocks(self, parts: Sequence[UserContent]) -> list[JsonValue]:
        """Return the blocks of a user message; each document must have text next to it."""
        blocks = [block for part in parts for block in self._part(part)]
        shows = any(isinstance(part, Document) for part in parts)
        if shows and not any(isinstance(part, Text) and part.text.strip() for part in parts):
            blocks.append({"text": _DOCUMENT_TEXT})
        return blocks

    def result_blocks(
        self, parts: Iterable[ResultContent]
    ) -> tuple[list[JsonValue], list[JsonValue]]:
        """Return the blocks inside a tool result, and the cache points to put after the result."""
        blocks = [block for part in parts for block in self._part(part)]
        points: list[JsonValue] = [block for block in blocks if _is_cache_point(block)]
        return [block for block in blocks if not _is_cache_point(block)], points

    def text_blocks(self, texts: Iterable[Text]) -> list[JsonValue]:
        """Return the blocks of texts for the field `system`."""
        return [block for text in texts for block in self._part(text)]

    def cache_point(self, cache: CacheMark | None) -> list[JsonValue]:
        """Return a list with the cache point for a mark; an empty list if there is no cache
        point.
        """
        if cache is None or not self._caches:
            return []
        lifetime: dict[str, JsonValue] = {"ttl": "1h"} if cache.lifetime == "1h" else {}
        return [{"cachePoint": {"type": "default", **lifetime}}]

    def _part(self, part: UserContent | ResultContent) -> Iterator[JsonValue]:
        match part:
            case Text():
                # Converse refuses empty text, and a cache point that does not follow any content.
                if part.text.strip():
                    yield {"text": part.text}
                    yield from self.cache_point(part.cache)
            case Image():
                yield {"image": _media(part.source, _IMAGE_FORMATS, "image")}
                yield from self.cache_point(part.cache)
            case Audio():
                sound: JsonValue = {"bytes": part.source.base64}
                yield {"audio": {"format": _AUDIO_FORMATS[part.format], "source": sound}}
            case Document():
                yield {"document": self._document(part)}
                yield from self.cache_point(part.cache)
            case _:
                assert_never(part)

    def _document(self, part: Document) -> JsonValue:
        # Models read the names of documents, and a caller's file name might contain instructions.
        self._documents += 1
        media = _media(part.source, CONVERSE_FILES, "document")
        return {"name": f"document {self._documents}", **media}


def _is_cache_point(block: JsonValue) -> bool:
    return isinstance(block, dict) and "cachePoint" in block


def _media(source: MediaSource, formats: Mapping[str, str], what: str) -> dict[str, JsonValue]:
    if not isinstance(source, InlineMedia):
        raise _refused(f"this model accepts {what} content as data only, not by URL")
    format_ = formats.get(source.media_type.partition(";")[0].strip().lower())
    if format_ is None:
        raise _refused(
            f"this model does not accept {what} content of the type {source.media_type[:80]!r}"
        )
    return {"format": format_, "source": {"bytes": source.base64}}


def _refused(what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"messages: {what}.", param="messages")
