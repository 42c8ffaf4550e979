"""The decoder for streams in OpenAI's legacy completions format."""

from collections.abc import Iterator
from typing import Final

from tollgate.core.content import Text
from tollgate.core.events import Ended, LogProbs, Started, StreamEvent, UsageReported
from tollgate.core.json_value import JsonValue
from tollgate.providers.codecs.openai_completions.wire import CHUNKS, Choice, Chunk, TextLogProbs
from tollgate.providers.ports.base import Frame
from tollgate.providers.shared.openai_choices import finish_of
from tollgate.providers.shared.openai_errors import parse_openai_stream_error
from tollgate.providers.shared.openai_usage import openai_usage_of
from tollgate.providers.shared.parts import OpenPart, Parts
from tollgate.providers.shared.refusals import UNREADABLE, early_close_error, malformed_error

_TEXT: Final = "text"


class CompletionDecoder:
    """Decodes one stream. `Ended` comes last, because usage follows the finish reason."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._started = False
        self._parts = Parts[str, OpenPart]()
        self._finish: str | None = None

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        """Yield the events of one SSE event, or of the whole reply of a server without streams."""
        data = frame.data.strip()
        if data and data != b"[DONE]":
            yield from self._chunk(self._parsed(data, frame.event))

    def end(self) -> Iterator[StreamEvent]:
        if self._finish is None:
            raise early_close_error(self._provider)
        finish = finish_of(self._finish, self._provider)
        yield from self._parts.close_all()
        yield Ended(
            finish="stop" if finish == "tool_calls" else finish, raw_finish=self._finish or None
        )

    def _parsed(self, data: bytes, event: str) -> Chunk:
        try:
            chunk = CHUNKS.decode(data)
        except UNREADABLE as invalid:
            if event == "error":
                raise parse_openai_stream_error(None, self._provider) from invalid
            raise malformed_error(self._provider, "a frame that cannot be read") from invalid
        if event == "error" or chunk.error is not None:
            raise parse_openai_stream_error(chunk.error, self._provider)
        if chunk.choices is None and chunk.usage is None:
            raise malformed_error(self._provider, "a frame of unknown form")
        return chunk

    def _chunk(self, chunk: Chunk) -> Iterator[StreamEvent]:
        if not self._started:
            self._started = True
            yield Started(
                upstream_id=chunk.id or None,
                served_model=chunk.model or None,
                system_fingerprint=chunk.system_fingerprint,
            )
        for choice in chunk.choices or ():
            yield from self._choice(choice)
        if chunk.usage is not None:
            yield UsageReported(usage=openai_usage_of(chunk.usage), raw=chunk.usage)

    def _choice(self, choice: Choice) -> Iterator[StreamEvent]:
        if choice.index:
            raise malformed_error(self._provider, "a second choice, which was not requested")
        noted = _log_probs(choice.logprobs)
        if choice.any_text or noted is not None:
            opened = self._parts.get(_TEXT)
            if opened is None:
                opened = OpenPart(part=Text(text=""))
                yield from self._parts.open(_TEXT, opened)
            if choice.any_text:
                yield opened.add(choice.any_text)
            if noted is not None:
                yield opened.note(noted)
        if choice.finish_reason is not None:
            self._finish = choice.finish_reason or self._finish


def _log_probs(lists: TextLogProbs | None) -> LogProbs | None:
    """Return the log probabilities in the form of chat completions; None if there are none."""
    if lists is None or not lists.tokens:
        return None
    values = lists.token_logprobs or []
    alternatives = lists.top_logprobs or []
    return LogProbs(
        entries=tuple(
            {
                "token": token,
                "logprob": values[place] if place < len(values) else None,
                "bytes": None,
                "top_logprobs": _entries(
                    alternatives[place] if place < len(alternatives) else None
                ),
            }
            for place, token in enumerate(lists.tokens)
        )
    )


def _entries(alternatives: dict[str, float | None] | None) -> list[JsonValue]:
    return [
        {"token": token, "logprob": value, "bytes": None}
        for token, value in (alternatives or {}).items()
    ]
