"""The bytes around the text of a stream's chunks, which most servers repeat in every chunk."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from tollgate.providers.codecs.openai_chat.wire import CHUNKS
from tollgate.providers.shared.refusals import UNREADABLE

# Learning stops after this many tries: some servers vary every chunk, for example by padding.
_LEARNED_MAX: Final = 4
_PROBE: Final = "probe"
_STRINGS: Final = msgspec.json.Decoder(str)


class ChunkPattern:
    """The bytes before and after the text of a plain chunk; matching costs a fifth of parsing.

    A pattern is verified before use: the chunk with another text in the same place must parse as a
    plain chunk of that text. Any JSON string between the same bytes is then such a text.
    """

    def __init__(self) -> None:
        # No chunk begins with a line break, so nothing matches before a pattern is learned.
        self._before = b"\n"
        self._after = b""
        self._from = self._to = 0
        self._learned = 0
        self.is_known = False
        """True once a pattern was learned."""

    def find_text(self, chunk: bytes) -> str | None:
        """Return the text of a chunk of this pattern; None if the chunk has to be parsed."""
        if not (chunk.startswith(self._before) and chunk.endswith(self._after)):
            return None
        try:
            text = chunk[self._from : self._to].decode()
        except UnicodeDecodeError:
            return None
        # JSON escapes quotes, backslashes and control characters, and nothing else.
        return text if text.isprintable() and '"' not in text and "\\" not in text else None

    def find_texts(self, chunks: Sequence[bytes]) -> list[str]:
        """Return the texts of the chunks up to the first that is not of this pattern."""
        count = len(chunks)
        while count and not self._fits(chunks[count - 1]):
            count -= 1
        if not count:
            return []
        written = [chunk[self._from : self._to] for chunk in chunks[:count]]
        # Rebuilt chunks are as long as the received ones: one comparison checks all.
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
        """Store the pattern of a plain chunk of this text, if the chunk contains the text."""
        if self._learned == _LEARNED_MAX:
            return
        self._learned += 1
        before, found, after = chunk.partition(f'"{text}"'.encode())
        # The probe must differ from the text. The match must not be an object key: replacing a key
        # could change which of two values counts.
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
        """Return whether a chunk begins and ends with the bytes of the pattern."""
        return (
            len(chunk) >= self._from - self._to
            and chunk.startswith(self._before)
            and chunk.endswith(self._after)
        )


def _decode(written: Sequence[str]) -> Iterator[str]:
    """Decode texts written as the inside of JSON strings, up to the first invalid one."""
    for text in written:
        try:
            yield _STRINGS.decode(f'"{text}"')
        except UNREADABLE:
            return
