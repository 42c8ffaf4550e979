"""Renders legacy completions, as a stream of frames or as a single body.

A stream consists of deltas, a finish frame, a frame with the accounts, and `[DONE]`. In a failed
stream, a frame with `error` and without `choices` replaces the frame with the accounts.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Final, assert_never

from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.buffer_budget import take
from tollgate.core.content import MadeImage, Refusal, Text
from tollgate.core.events import (
    Citation,
    Ended,
    Finish,
    LogProbs,
    Note,
    Output,
    PartDelta,
    PartEnd,
    Partial,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UnknownFields,
    UsageReported,
)
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.request import GenerationRequest
from tollgate.core.response import GenerationResponse, buffered_size
from tollgate.core.server_tools import RunResult
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.shared.accounts import CompletionFrames
from tollgate.ingress.shared.media import image_markdown

_DELTA_END: Final = b',"logprobs":null,"finish_reason":null}]}\n\n'

_PartEvent = PartStart | PartDelta | PartNote | PartEnd


class TextRenderer:
    """Renders the frames of one choice; `head` is the start of every frame in the reply.

    The only content is text: answers, refusals, and images as Markdown links. Reasoning is
    omitted, although usage counts it. Tool calls cannot occur, because requests have no tools.

    `prompt` is the text that the answer repeats first. With `notes`, each text waits for its log
    probabilities, so that one frame contains both.
    """

    def __init__(self, choice: int, head: bytes, *, prompt: str, notes: bool) -> None:
        self._choice = choice
        self._prompt = prompt
        self._notes = notes
        self._turns: dict[int, list[PartDelta | PartNote | PartEnd]] = {}
        """The queued events of each open part, keyed by the index of the part.

        A text and a refusal may arrive interleaved, but the format has a single string for both, so
        the events of later parts wait until the first part ends.
        """
        self._waiting = ""
        self._offset = len(prompt)
        """The number of characters before the next token."""
        self.set_head(head)

    def set_head(self, head: bytes) -> None:
        """Set the start of all later frames."""
        self._choice_head = head + b',"choices":[{"index":%d,"text":' % self._choice

    def begin(self, head: bytes) -> bytes:
        """Render the prompt if the answer has to repeat it."""
        self.set_head(head)
        return self._frame(self._prompt) if self._prompt else b""

    def feed(self, event: _PartEvent) -> bytes:
        """Render one event; return no bytes if nothing has to be sent."""
        match event:
            case PartStart(index=index, part=part):
                if not isinstance(part, Text | Refusal | MadeImage):
                    return b""
                self._turns[index] = []
                if isinstance(part, MadeImage):
                    return self.feed(PartDelta(index=index, text=image_markdown(part)))
                return b""
            case PartDelta(index=index) | PartNote(index=index) | PartEnd(index=index):
                if index not in self._turns:
                    return b""
                if index != next(iter(self._turns)):
                    take(buffered_size(event))
                    self._turns[index].append(event)
                    return b""
                return self._in_turn(event)
            case _:
                assert_never(event)

    def finish(self, event: Ended) -> bytes:
        """Render the finish frame up to the end of `choices`, so that fields can be appended."""
        reasons = to_json(_reasons(event.finish, event.raw_finish))
        return b'%b"","logprobs":null,%b]' % (self._choice_head, reasons[1:])

    def _in_turn(self, event: PartDelta | PartNote | PartEnd) -> bytes:
        match event:
            case PartDelta(text=text):
                return self._more(text) if text else b""
            case PartNote(note=note):
                return self._noted(note)
            case PartEnd(index=index):
                frames = self._flush()
                del self._turns[index]
                waiting = next(iter(self._turns.values()), [])
                events, waiting[:] = [*waiting], []
                # If these events include a PartEnd, the recursion goes on to the next part.
                return frames + b"".join(map(self._in_turn, events))
            case _:
                assert_never(event)

    def _more(self, text: str) -> bytes:
        if not self._notes:
            return self._frame(text)
        frame = self._flush()
        self._waiting = text
        return frame

    def _noted(self, note: Note) -> bytes:
        match note:
            case Citation() | RunResult():
                return b""
            case LogProbs():
                text, self._waiting = self._waiting, ""
                rendered = _log_probs((note,), self._offset)
                self._offset += sum(map(len, _tokens(rendered)))
                return b'%b%b,"logprobs":%b,"finish_reason":null}]}\n\n' % (
                    self._choice_head,
                    to_json(text),
                    to_json(rendered),
                )
            case _:
                assert_never(note)

    def _flush(self) -> bytes:
        text, self._waiting = self._waiting, ""
        return self._frame(text) if text else b""

    def _frame(self, text: str) -> bytes:
        return self._choice_head + to_json(text) + _DELTA_END


def render_text_choice(
    index: int, response: GenerationResponse, *, prompt: str
) -> dict[str, JsonValue]:
    """Render an entry for `choices` in a non-streamed reply; its text starts with `prompt`."""
    texts = [
        image_markdown(part) if isinstance(part, MadeImage) else part.text
        for part in response.parts
        if isinstance(part, Text | Refusal | MadeImage)
    ]
    notes = [
        note
        for part_index, part in enumerate(response.parts)
        if isinstance(part, Text | Refusal)
        for note in response.notes.get(part_index, ())
        if isinstance(note, LogProbs)
    ]
    return {
        "text": prompt + "".join(texts),
        "index": index,
        "logprobs": _log_probs(notes, len(prompt)) if notes else None,
        **_reasons(response.finish, response.raw_finish),
    }


def _log_probs(notes: Iterable[LogProbs], offset: int) -> dict[str, JsonValue]:
    """Render `logprobs`; `offset` is the number of characters before the first token."""
    entries = [entry for note in notes for entry in note.entries]
    tokens = [token if isinstance(token := entry.get("token"), str) else "" for entry in entries]
    return {
        "tokens": [*tokens],
        "token_logprobs": [entry.get("logprob") for entry in entries],
        "top_logprobs": [_by_token(entry.get("top_logprobs")) for entry in entries],
        "text_offset": [*accumulate(map(len, tokens[:-1]), initial=offset)] if tokens else [],
    }


def _by_token(alternatives: JsonValue) -> dict[str, JsonValue]:
    entries = alternatives if isinstance(alternatives, list) else []
    return {
        str(entry.get("token", "")): entry.get("logprob")
        for entry in entries
        if isinstance(entry, dict)
    }


def _tokens(rendered: dict[str, JsonValue]) -> list[str]:
    tokens = rendered["tokens"]
    return [str(token) for token in tokens] if isinstance(tokens, list) else []


def _reasons(finish: Finish, raw_finish: str | None) -> dict[str, JsonValue]:
    # The finish reason `tool_calls` is not in OpenAI's schema for this format.
    reason = "stop" if finish == "tool_calls" else finish
    return {"finish_reason": reason, "native_finish_reason": raw_finish}


class CompletionRenderer(CompletionFrames):
    """Renders one reply as a legacy completion, streamed or not."""

    def __init__(
        self, call: ParsedCall, served: ServedBy, *, episode_id: str, credits_per_usd: Decimal
    ) -> None:
        super().__init__(call, served, episode_id=episode_id, credits_per_usd=credits_per_usd)
        self._prompts = _echoed(call.request) if call.echoes else [""] * call.request.answers
        self._choices = [
            TextRenderer(
                choice, self._head, prompt=prompt, notes=bool(call.request.sampling.logprobs)
            )
            for choice, prompt in enumerate(self._prompts)
        ]

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        writer = self._choices[choice]
        match event:
            case PartStart() | PartDelta() | PartNote() | PartEnd():
                return writer.feed(event)
            case Started():
                head = self._frame_head(event)
                if choice == 0:
                    self._head = head
                return writer.begin(head)
            case UsageReported() | Output() | Partial() | UnknownFields():
                return b""
            case Ended():
                return self._finish_frame(writer.finish(event))
            case _:
                assert_never(event)

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        choices = [
            to_json(render_text_choice(index, response, prompt=self._prompts[index]))
            for index, response in enumerate(responses)
        ]
        return self._whole(responses[0].started, choices, record)

    @override
    def _envelope(self, started: Started, *, streamed: bool) -> dict[str, JsonValue]:
        envelope: dict[str, JsonValue] = {
            "id": f"gen-{self._served.generation_id}",
            "object": "text_completion",
            "created": self._served.created_s,
            "model": self._served.model,
        }
        if started.system_fingerprint is not None:
            envelope["system_fingerprint"] = started.system_fingerprint
        envelope["episode_id"] = self._episode_id
        return envelope


def _echoed(request: GenerationRequest) -> list[str]:
    """Return the prompts, each repeated for all of its choices."""
    return [prompt for prompt in request.prompts for _ in range(request.choices)]
