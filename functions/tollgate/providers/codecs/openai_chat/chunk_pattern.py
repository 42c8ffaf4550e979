"""Finds the text of a chunk between the bytes that most servers repeat unchanged in every chunk of
a stream.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from tollgate.providers.codecs.openai_chat.wire import CHUNKS
from tollgate.providers.shared.refusals import UNREADABLE

# Learning stops after this number of attempts, because some servers make every chunk different by
# padding.
_LEARNED_MAX: Final = 4
_PROBE: Final = "probe"
_STRINGS: Final = msgspec.json.Decoder(str)


class ChunkPattern:
    """The bytes around the text of a plain chunk; a match takes a fifth of a parser's time.

    A pattern is verified before use: the chunk with another text in the same position must parse as
    a plain chunk with that text. The same then holds for any JSON string between these bytes.
    """

    def __init__(self) -> None:
        # No chunk begins with a line break, so no chunk matches before a pattern is learned.
        self._before = b"\n"
        self._after = b""
        self._from = self._to = 0
        self._learned = 0
        self.is_known = False
        """True once a pattern was learned."""

    def find_text(self, chunk: bytes) -> str | None:
        """Return the text of a chunk that matches the pattern; None if it must be parsed."""
        if not (chunk.startswith(self._before) and chunk.endswith(self._after)):
            return None
        try:
            text = chunk[self._from : self._to].decode()
        except UnicodeDecodeError:
            return None
        # Only quotes, backslashes and control characters must be escaped in JSON.
        return text if text.isprintable() and '"' not in text and "\\" not in text else None

    def find_texts(self, chunks: Sequence[bytes]) -> list[str]:
        """Return the texts of the chunks before the first chunk that does not match the pattern."""
        count = len(chunks)
        while count and not self._fits(chunks[count - 1]):
            count -= 1
        if not count:
            return []
        written = [chunk[self._from : self._to] for chunk in chunks[:count]]
        # The rebuilt chunks have the length of the received chunks, so one comparison checks all.
        between = (self._after + b"\n" + self._before).join(written)
        if self._before + between + self._after != b"\n".join(chunks[:count]):
            misfits = (place for place in range(count) if not self._fits(chunks[place]))
            del written[next(misfits) :]
        try:
            texts = b"\n".join(written).decode().split("\n")
        except UnicodeDecodeError:
            return []
        if len(texts) != len(written):
            return []
        text = "".join(texts)
        is_plain = text.isprintable() and '"' not in text and "\\" not in text
        return texts if is_plain else [*_decode(texts)]

    def learn(self, chunk: bytes, text: str) -> None:
        """Store the pattern of a plain chunk with this text, if the text is found in the chunk."""
        if self._learned == _LEARNED_MAX:
            return
        self._learned += 1
        before, found, after = chunk.partition(f'"{text}"'.encode())
        # The probe must differ from the text. The text must not be an object key, because replacing
        # a key could change which of two equal keys counts.
        if not found or text == _PROBE or after.lstrip().startswith(b":"):
            return
        before, after = before + b'"', b'"' + after
        try:
            is_text = CHUNKS.decode(before + _PROBE.encode() + after).plain_text == _PROBE
        except UNREADABLE:
            is_text = False
        if is_text:
            self._before, self._after = before, after
            self._from, self._to = len(before), -len(after)
            self.is_known = True

    def _fits(self, chunk: bytes) -> bool:
        """Return whether a chunk begins and ends with the pattern's bytes."""
        return (
            len(chunk) >= self._from - self._to
            and chunk.startswith(self._before)
            and chunk.endswith(self._after)
        )


def _decode(written: Sequence[str]) -> Iterator[str]:
    """Decode the contents of JSON strings, up to the first invalid string."""
    for text in written:
        try:
            yield _STRINGS.decode(f'"{text}"')
        except UNREADABLE:
            return
