"""The simulator's transcripts: one word per second, chosen by a hash of the recording."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final

import pydantic_core
from msgspec import Struct

from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import WireRequest

_WORDS: Final = (
    "alpha",
    "bravo",
    "charlie",
    "delta",
    "echo",
    "foxtrot",
    "golf",
    "hotel",
    "india",
    "juliett",
    "kilo",
    "lima",
    "mike",
    "november",
    "oscar",
    "papa",
)
_WORDS_MAX: Final = 600
_WORDS_PER_SEGMENT: Final = 10
_BITS_PER_SECOND: Final = 64_000
_WAV_RATE: Final = slice(28, 32)


class _Transcript(Struct, frozen=True, kw_only=True):
    """The transcript of one recording, and the format that the request asks for."""

    words: tuple[str, ...]
    seconds: float
    response_format: str
    has_words: bool
    translates: bool

    @property
    def text(self) -> str:
        """The text of the transcript."""
        return " ".join(self.words)

    def whole(self) -> bytes:
        """Return the body of a whole answer."""
        body: dict[str, JsonValue] = {"text": self.text, "usage": self._usage}
        if self.response_format == "verbose_json":
            body |= {
                "task": "translate" if self.translates else "transcribe",
                "language": "english",
                "duration": self.seconds,
                "segments": [*self._segments()],
            }
            if self.has_words:
                body["words"] = [
                    {"word": word, "start": float(place), "end": place + 1.0}
                    for place, word in enumerate(self.words)
                ]
        return pydantic_core.to_json(body)

    def events(self) -> Iterator[bytes]:
        """Yield the events of a streamed answer."""
        for place, word in enumerate(self.words):
            delta = f" {word}" if place else word
            yield pydantic_core.to_json({"type": "transcript.text.delta", "delta": delta})
        done = {"type": "transcript.text.done", "text": self.text, "usage": self._usage}
        yield pydantic_core.to_json(done)

    @property
    def _usage(self) -> dict[str, JsonValue]:
        return {"type": "duration", "seconds": self.seconds}

    def _segments(self) -> Iterator[dict[str, JsonValue]]:
        for start in range(0, len(self.words), _WORDS_PER_SEGMENT):
            words = self.words[start : start + _WORDS_PER_SEGMENT]
            end = min(float(start + len(words)), self.seconds)
            yield {
                "id": start // _WORDS_PER_SEGMENT,
                "start": float(start),
                "end": end,
                "text": " ".join(words),
            }


def answer_with_transcript(request: WireRequest, body: bytes) -> Iterator[bytes]:
    """Return the events of a stream, or the whole transcript as one piece.

    The recording and the options are in the request's form, so `body` is not read.
    """
    transcript = _transcribe(request)
    if request.reply_bytes_max is None:
        return transcript.events()
    return iter((transcript.whole(),))


def _transcribe(request: WireRequest) -> _Transcript:
    """Return the transcript of the recording in the request's form."""
    texts: Mapping[str, str] = {
        part.name: part.content.decode() for part in request.form if part.file_name is None
    }
    content = next(part.content for part in request.form if part.file_name is not None)
    rate = int.from_bytes(content[_WAV_RATE], "little") if content.startswith(b"RIFF") else 0
    seconds = len(content) / rate if rate else len(content) * 8 / _BITS_PER_SECOND
    count = min(max(1, round(seconds)), _WORDS_MAX)
    digest = sha256(content).digest()
    granularities = [
        part.content for part in request.form if part.name == "timestamp_granularities[]"
    ]
    return _Transcript(
        words=tuple(
            _WORDS[(digest[place % len(digest)] + place) % len(_WORDS)] for place in range(count)
        ),
        seconds=round(seconds, 2),
        response_format=texts.get("response_format", "json"),
        has_words=b"word" in granularities,
        translates=request.path.endswith("/translations"),
    )
