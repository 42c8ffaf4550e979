"""The bytes around the text of a stream's chunks, which most servers repeat in each of them."""

from typing import Final

from tollgate.providers.openai_chat.wire import CHUNKS
from tollgate.providers.shared.refusals import UNREADABLE

# Some servers put something else into each chunk, such as padding: searching theirs is given up.
_LEARNED_MAX: Final = 4
_PROBE: Final = "probe"


class ChunkPattern:
    """The bytes before and after the text of a plain chunk: a fifth of the cost of parsing it.

    Where the text is, no pattern guesses: a chunk with another text there has to parse as a plain
    chunk of that text. Between the same bytes any text that JSON writes as it is has the same
    meaning.
    """

    def __init__(self) -> None:
        # No chunk begins with this.
        self._before = b"\n"
        self._after = b""
        self._from = self._to = 0
        self._learned = 0

    def find_text(self, chunk: bytes) -> str | None:
        """Return the text of a chunk of this pattern; None if the chunk has to be parsed."""
        if not (chunk.startswith(self._before) and chunk.endswith(self._after)):
            return None
        try:
            text = chunk[self._from : self._to].decode()
        except UnicodeDecodeError:
            return None
        # JSON writes every other text as it is, and has no bare control characters.
        return text if text.isprintable() and '"' not in text and "\\" not in text else None

    def learn(self, chunk: bytes, text: str) -> None:
        """Take the pattern of a plain chunk of this text, if the text is found in it."""
        if self._learned == _LEARNED_MAX:
            return
        self._learned += 1
        before, found, after = chunk.partition(f'"{text}"'.encode())
        if not found:
            return
        before, after = before + b'"', b'"' + after
        try:
            is_text = CHUNKS.decode(before + _PROBE.encode() + after).plain_text == _PROBE
        except UNREADABLE:
            is_text = False
        if is_text:
            self._before, self._after = before, after
            self._from, self._to = len(before), -len(after)
