"""Renders one choice of a stream."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, assert_never

from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.content import (
    MadeImage,
    Part,
    Provenance,
    Reasoning,
    Refusal,
    ServerToolRun,
    Text,
    ToolCall,
)
from tollgate.core.documents.known_files import KnownFile
from tollgate.core.events import (
    Citation,
    Ended,
    LogProbs,
    Note,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
)
from tollgate.core.json_value import JsonValue
from tollgate.core.server_tools import RunResult
from tollgate.ingress.chat_completions import answer_fields
from tollgate.ingress.chat_completions.file_annotations import render_files
from tollgate.ingress.chat_completions.run_frames import RunFrames

_DELTA_END: Final = b'},"finish_reason":null}]}\n\n'
# Fields of a reasoning detail that are sent only in its last piece, because some clients
# concatenate the strings of all pieces and others keep the last one.
_AT_THE_END: Final = ("format", "signature", "data")
# Fields of a reasoning detail that are sent once: in the first piece, if they are known by then.
_STATED_ONCE: Final = ("id", "model")


class ChoiceRenderer:
    """Renders the frames of one choice; `head` is the start of every frame in the reply.

    `reported_tools` are the server tools whose progress is reported in frames.
    """

    def __init__(
        self,
        choice: int,
        head: bytes,
        *,
        model: str,
        excludes_reasoning: bool,
        reported_tools: Collection[str] = (),
    ) -> None:
        self._choice = choice
        self._model = model
        self._excludes_reasoning = excludes_reasoning
        self._parts: list[Part] = []
        self._frames: list[tuple[bytes, ...]] = []
        """The constant bytes before and after the text of a delta, for each part."""
        self._ordinals: list[int] = []
        self._without_arguments: set[int] = set()
        self._calls = 0
        self._thoughts = 0
        self._images = 0
        self._citations = 0
        self._runs = RunFrames(reported_tools)
        self._text_length = 0
        """The number of characters of text so far."""
        self._preceding = 0
        """The number of characters before the current text part."""
        self.set_head(head)

    def set_head(self, head: bytes) -> None:
        """Set the start of later frames; deltas of parts that have started keep the old head."""
        self._delta_head = head + b',"choices":[{"index":%d,"delta":{' % self._choice

    def begin(self, head: bytes) -> bytes:
        """Render the first frame, which contains the role."""
        self.set_head(head)
        return self._delta({"role": "assistant", "content": ""})

    def feed(self, event: PartStart | PartDelta | PartNote | PartEnd) -> bytes:
        """Render one event; return no bytes if nothing has to be sent."""
        match event:
            case PartDelta(index=index, text=text):
                return self._more(index, text)
            case PartStart(part=part):
                return self._start(part)
            case PartNote(index=index, note=note):
                return self._note(index, note)
            case PartEnd(index=index, provenance=provenance):
                return self._end(index, provenance)
            case _:
                assert_never(event)

    def finish_runs(self) -> bytes:
        """Render the frame with all server tool runs; return no bytes if there were none."""
        return self._delta(self._runs.finish()) if self._runs.started else b""

    def finish_files(self, files: Sequence[KnownFile]) -> bytes:
        """Render the frame with annotations for the documents that were read."""
        entries = enumerate(render_files(files), start=self._citations)
        return self._delta({"annotations": [{"index": n, **entry} for n, entry in entries]})

    def finish(self, event: Ended) -> bytes:
        """Render the finish frame up to the end of `choices`, so that fields can be appended."""
        reasons = {"finish_reason": event.finish, "native_finish_reason": event.raw_finish}
        return b"%b},%b]" % (self._delta_head, to_json(reasons)[1:])

    def _delta(self, delta: dict[str, JsonValue]) -> bytes:
        return self._delta_head + to_json(delta)[1:-1] + _DELTA_END

    def _deltas(self, deltas: Iterator[dict[str, JsonValue]]) -> bytes:
        return b"".join(map(self._delta, deltas))

    def _more(self, index: int, text: str) -> bytes:
        if not text:
            return b""
        if index in self._without_arguments and text.strip():
            self._without_arguments.remove(index)
        if isinstance(self._parts[index], Text):
            self._text_length += len(text)
        around = self._frames[index]
        return to_json(text).join(around) if around else b""

    def _start(self, part: Part) -> bytes:
        head = self._delta_head
        ordinal = 0
        frame = b""
        around: tuple[bytes, ...] = ()
        match part:
            case Text():
                self._preceding = self._text_length
                around = (head + b'"content":', _DELTA_END)
            case Refusal():
                around = (head + b'"refusal":', _DELTA_END)
            case Reasoning():
                ordinal, self._thoughts = self._thoughts, self._thoughts + 1
                if not self._excludes_reasoning:
                    around = _around_thought(head, ordinal, _text_field(part.provenance))
                    # An entry is sent before its text, because clients insert entries by index.
                    frame = self._begin_thought(part, ordinal)
            case ToolCall():
                ordinal, self._calls = self._calls, self._calls + 1
                field = b'"custom":{"input":' if part.is_text else b'"function":{"arguments":'
                around = (
                    head + b'"tool_calls":[{"index":%d,%b' % (ordinal, field),
                    b"}}]" + _DELTA_END,
                )
                if not part.is_text:
                    self._without_arguments.add(len(self._parts))
                # Some clients look for a signature only in the delta that has the call's name.
                call = {
                    "index": ordinal,
                    **answer_fields.render_call(part, ""),
                    **answer_fields.render_extra_content(part.provenance),
                }
                frame = self._delta({"tool_calls": [call]})
            case MadeImage():
                ordinal, self._images = self._images, self._images + 1
                frame = self._delta({"images": [answer_fields.render_image(part, ordinal)]})
            case ServerToolRun():
                deltas = self._runs.start(len(self._parts), part, self._text_length)
                frame = self._deltas(deltas)
            case _:
                assert_never(part)
        self._parts.append(part)
        self._frames.append(around)
        self._ordinals.append(ordinal)
        return frame

    def _note(self, index: int, note: Note) -> bytes:
        part = self._parts[index]
        match note:
            case Citation() if isinstance(part, Text):
                # Clients that accumulate deltas need an index on every list entry.
                position, self._citations = self._citations, self._citations + 1
                annotation = answer_fields.render_annotation(note, self._preceding)
                return self._delta({"annotations": [{"index": position, **annotation}]})
            case LogProbs() if isinstance(part, Text | Refusal):
                notes, refusal_notes = ((), (note,)) if isinstance(part, Refusal) else ((note,), ())
                return b'%b},"logprobs":%b,"finish_reason":null}]}\n\n' % (
                    self._delta_head,
                    answer_fields.encode_log_probs(notes, refusal_notes),
                )
            case RunResult() if isinstance(part, ServerToolRun):
                self._runs.note(index, note)
                return b""
            case Citation() | LogProbs() | RunResult():
                # OpenAI's format has no fields for notes on reasoning or on calls.
                return b""
            case _:
                assert_never(note)

    def _detail(self, part: Reasoning, ordinal: int) -> dict[str, JsonValue]:
        return answer_fields.render_reasoning_detail(
            ordinal,
            part,
            model=self._model,
            text_length=self._text_length,
            calls=self._calls,
            runs=self._runs.started,
        )

    def _begin_thought(self, part: Reasoning, ordinal: int) -> bytes:
        detail = self._detail(part, ordinal)
        first_piece = {name: value for name, value in detail.items() if name not in _AT_THE_END}
        if "data" in detail:
            # Clients with typed models reject an encrypted detail without `data`.
            first_piece["data"] = ""
        return self._delta({"reasoning_details": [first_piece]})

    def _end_thought(self, part: Reasoning, ordinal: int, provenance: Provenance | None) -> bytes:
        first_piece = self._detail(part, ordinal)
        detail = self._detail(replace(part, provenance=provenance or part.provenance), ordinal)
        rest = {
            name: value
            for name, value in detail.items()
            if name in _AT_THE_END or (name in _STATED_ONCE and name not in first_piece)
        }
        if not rest:
            return b""
        kind: dict[str, JsonValue] = {"type": detail["type"], "index": ordinal}
        return self._delta({"reasoning_details": [kind | rest]})

    def _end(self, index: int, provenance: Provenance | None) -> bytes:
        part, ordinal = self._parts[index], self._ordinals[index]
        match part:
            case Text() | Refusal() | MadeImage():
                return b""
            case ServerToolRun():
                return self._deltas(self._runs.end(index))
            case Reasoning():
                if self._excludes_reasoning:
                    return b""
                return self._end_thought(part, ordinal, provenance)
            case ToolCall():
                sent_content = answer_fields.render_extra_content(part.provenance)
                extra_content = (
                    {} if sent_content else answer_fields.render_extra_content(provenance)
                )
                if not extra_content and index not in self._without_arguments:
                    return b""
                missing = "{}" if index in self._without_arguments else ""
                more: dict[str, JsonValue] = (
                    {"custom": {"input": ""}}
                    if part.is_text
                    else {"function": {"arguments": missing}}
                )
                return self._delta({"tool_calls": [{"index": ordinal, **more, **extra_content}]})
            case _:
                assert_never(part)


def _text_field(provenance: Provenance | None) -> tuple[str, str]:
    """Return the type of a reasoning detail, and the name of its text field."""
    if provenance is not None and provenance.is_summary:
        return "reasoning.summary", "summary"
    return "reasoning.text", "text"


def _around_thought(head: bytes, ordinal: int, kind: tuple[str, str]) -> tuple[bytes, ...]:
    type_, field = (name.encode() for name in kind)
    return (
        head + b'"reasoning":',
        b',"reasoning_content":',
        b',"reasoning_details":[{"type":"%b","index":%d,"%b":' % (type_, ordinal, field),
        b"}]" + _DELTA_END,
    )
