"""The decoder for Gemini's generateContent responses, streamed and non-streamed."""

from collections.abc import Generator, Iterator
from typing import Final

from msgspec.structs import replace
from pydantic_core import ValidationError

from tollgate.core.content import InlineMedia, Provenance, Reasoning, Text
from tollgate.core.events import (
    Citation,
    Ended,
    Finish,
    LogProbs,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.json_value import JsonValue
from tollgate.core.signers import GEMINI
from tollgate.core.usage import Usage
from tollgate.providers.codecs.gemini.arguments import UnknownPlace
from tollgate.providers.codecs.gemini.calls import OpenCall, new_call, provenance_of
from tollgate.providers.codecs.gemini.errors import error_in_stream
from tollgate.providers.codecs.gemini.notes import citations, log_probs
from tollgate.providers.codecs.gemini.usage import usage_of
from tollgate.providers.codecs.gemini.wire import (
    Blob,
    Candidate,
    Chunk,
    Chunks,
    FunctionCall,
    Part,
    read_chunk,
)
from tollgate.providers.ports.base import Frame
from tollgate.providers.shared.counts import Counts
from tollgate.providers.shared.parts import OpenPart, Parts
from tollgate.providers.shared.pictures import check_shown
from tollgate.providers.shared.refusals import early_close_error, malformed_error

# An answer with tool calls also ends with `STOP`.
FINISH: Final[dict[str, Finish]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}

# Finish reasons of unusable answers, which raise an error: `stop` would suggest a complete answer.
_BROKEN: Final = frozenset(
    {
        "MALFORMED_FUNCTION_CALL",
        "MALFORMED_RESPONSE",
        "MISSING_THOUGHT_SIGNATURE",
        "TOO_MANY_TOOL_CALLS",
        "UNEXPECTED_TOOL_CALL",
    }
)

# Fields of a part that the decoder ignores, because they are not content.
_METADATA_FIELDS: Final = frozenset({"mediaResolution", "partMetadata", "videoMetadata"})

_TextKind = type[Text] | type[Reasoning]
# The keys of the open text and the open call in `Parts`. A text ends when a call begins, and a call
# ends when a text begins.
_TEXT: Final = "text"
_CALL: Final = "call"


class GeminiDecoder:
    """Decodes one stream. `Ended` comes last, because usage may follow the finish reason."""

    def __init__(
        self, provider: str, *, signer: str | None = GEMINI, searches_billed_once: bool = False
    ) -> None:
        self._provider = provider
        self._signer = signer
        self._searches_billed_once = searches_billed_once
        self._started = False
        self._parts = Parts[str, OpenPart]()
        self._text_so_far: list[str] = []
        self._cited: set[Citation] = set()
        self._queries: set[str] = set()
        self._raw_usage: JsonValue = None
        self._finish: str | None = None
        self._blocked: str | None = None

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        """Yield the events of one chunk, or of all chunks if they arrive as one JSON array."""
        data = frame.data.strip()
        if not data:
            return
        for number, chunk in enumerate(self._parsed(data)):
            yield from self._chunk(chunk, data + number.to_bytes(4, "big"))

    def end(self) -> Iterator[StreamEvent]:
        reason = self._blocked or self._finish
        if reason is None:
            raise early_close_error(self._provider)
        known_finish: Finish | None = "content_filter" if self._blocked else FINISH.get(reason)
        if reason in _BROKEN or (known_finish is None and not self._parts.count):
            raise malformed_error(self._provider, f"the finish reason {reason[:64]!r}")
        yield from self._parts.close_all()
        finish = self._parts.finish_of(known_finish or "stop")
        yield Ended(finish=finish, raw_finish=reason, prompt_blocked=self._blocked is not None)

    def _parsed(self, data: bytes) -> list[Chunk]:
        if not data.startswith(b"["):
            return [read_chunk(data, self._provider)]
        try:
            return Chunks.model_validate_json(data).root
        except ValidationError as invalid:
            raise malformed_error(self._provider, "a frame that cannot be read") from invalid

    def _chunk(self, chunk: Chunk, seed: bytes) -> Iterator[StreamEvent]:
        if chunk.error is not None:
            raise error_in_stream(chunk.error, self._provider)
        fields = (chunk.candidates, chunk.feedback, chunk.usage, chunk.model)
        if all(field is None for field in fields):
            raise malformed_error(self._provider, "a frame of unknown form")
        tier = Counts(chunk.usage).word("serviceTier")
        if not self._started:
            self._started = True
            yield Started(upstream_id=chunk.id, served_model=chunk.model, service_tier=tier)
        if chunk.feedback is not None and chunk.feedback.block_reason:
            self._blocked = chunk.feedback.block_reason
            if chunk.feedback.message:
                yield from self._parts.refuse(chunk.feedback.message)
        for candidate in chunk.candidates or ():
            yield from self._candidate(candidate, seed)
        self._raw_usage = chunk.usage or self._raw_usage
        counted = replace(usage_of(chunk.usage), web_searches=self._searches())
        if counted != Usage():
            yield UsageReported(usage=counted, raw=self._raw_usage, service_tier=tier)

    def _searches(self) -> int | None:
        """Return the number of searches that Google bills: the number of queries, or 1 for all."""
        if not self._queries:
            return None
        return 1 if self._searches_billed_once else len(self._queries)

    def _candidate(self, candidate: Candidate, seed: bytes) -> Iterator[StreamEvent]:
        if candidate.index != 0:
            raise malformed_error(self._provider, "a second choice, which was not requested")
        for part in candidate.content.parts:
            yield from self._part(part, seed)
        if candidate.grounding is not None:
            # Google does not bill empty queries: https://ai.google.dev/gemini-api/docs/google-search
            self._queries.update(filter(None, candidate.grounding.queries))
        yield from self._notes(candidate)
        self._finish = candidate.finish_reason or self._finish

    def _part(self, part: Part, seed: bytes) -> Iterator[StreamEvent]:
        if part.call is not None:
            yield from self._function_call(part.call, part.signature, seed)
            return
        if part.blob is not None:
            yield from self._image(part.blob, part)
            return
        if unknown := sorted(set(part.model_extra or {}) - _METADATA_FIELDS):
            raise malformed_error(
                self._provider, f"a part {unknown[0][:64]!r}, which an answer cannot have"
            )
        kind = Reasoning if part.thought else Text
        if part.text:
            opened = yield from self._open(kind)
            if kind is Text:
                self._text_so_far.append(part.text)
            yield opened.add(part.text)
        if part.signature is None:
            return
        thought = self._open_thought()
        if thought is not None and kind is Reasoning:
            thought.provenance = provenance_of(part.signature, self._signer)
            yield from self._close_text()
        else:
            yield from self._signature_alone(part.signature)

    def _image(self, blob: Blob, part: Part) -> Iterator[StreamEvent]:
        """Yield an image; drafts inside thoughts are left out, because the answer repeats them."""
        if not blob.media_type.startswith("image/") or not blob.base64:
            raise malformed_error(
                self._provider, f"content of type {blob.media_type[:64]!r}, which was not requested"
            )
        if part.thought:
            return
        yield from self._parts.close(_CALL)
        yield from self._close_text()
        provenance = None if part.signature is None else provenance_of(part.signature, self._signer)
        source = InlineMedia(media_type=blob.media_type, base64=blob.base64)
        yield from self._parts.show(check_shown(source, self._provider), provenance)

    def _open_thought(self) -> OpenPart | None:
        opened = self._parts.get(_TEXT)
        return opened if opened is not None and isinstance(opened.part, Reasoning) else None

    def _signature_alone(self, signature: str) -> Iterator[StreamEvent]:
        """Yield empty reasoning with a text's signature, for which text parts have no field."""
        if self._open_thought() is not None:
            yield from self._close_text()
        signed = provenance_of(signature, self._signer)
        keeper = OpenPart(part=Reasoning(text="", provenance=signed))
        yield self._parts.begin(keeper)
        yield from keeper.finish()

    def _function_call(
        self, call: FunctionCall, signature: str | None, seed: bytes
    ) -> Iterator[StreamEvent]:
        if call.name:
            yield from self._close_text()
            yield from self._parts.close(_CALL)
            yield from self._parts.open(_CALL, new_call(call, signature, seed, self._parts.count))
        opened = self._parts.get(_CALL)
        if not isinstance(opened, OpenCall):
            raise malformed_error(self._provider, "a piece of a call that has no name")
        try:
            opened.take(call, signature)
        except UnknownPlace as unknown:
            raise malformed_error(
                self._provider, "a piece of a call with an invalid path"
            ) from unknown
        if not call.will_continue:
            yield from self._parts.close(_CALL)

    def _notes(self, candidate: Candidate) -> Iterator[StreamEvent]:
        if candidate.log_probs is not None:
            likelihoods = log_probs(candidate.log_probs)
            if likelihoods is not None:
                yield from self._noted(likelihoods)
        if candidate.grounding is None and candidate.citations is None:
            return
        for citation in citations(candidate, "".join(self._text_so_far)):
            # A chunk may repeat the sources of earlier chunks.
            if citation not in self._cited:
                self._cited.add(citation)
                yield from self._noted(citation)

    def _noted(self, note: Citation | LogProbs) -> Iterator[StreamEvent]:
        opened = yield from self._open(Text)
        yield opened.note(note)

    def _open(self, kind: _TextKind) -> Generator[StreamEvent, None, OpenPart]:
        """Return the open text of this kind, and open it first if necessary."""
        yield from self._parts.close(_CALL)
        opened = self._parts.get(_TEXT)
        if opened is None or not isinstance(opened.part, kind):
            yield from self._close_text()
            thought = Reasoning(text="", provenance=Provenance(signer=self._signer))
            opened = OpenPart(part=Text(text="") if kind is Text else thought)
            yield from self._parts.open(_TEXT, opened)
        return opened

    def _close_text(self) -> Iterator[StreamEvent]:
        yield from self._parts.close(_TEXT)
        self._text_so_far.clear()
