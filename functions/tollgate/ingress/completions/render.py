"""Rendering of legacy completions, as a stream of frames or as one body.

A stream consists of deltas, a finish frame, a frame with the accounts, and `[DONE]`. In a failed
stream, a frame with `error` and without `choices` replaces the frame with the accounts.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import assert_never

from typing_extensions import override

from tollgate.core.events import (
    Ended,
    Output,
    PartDelta,
    PartEnd,
    Partial,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.request import GenerationRequest
from tollgate.core.response import GenerationResponse
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.completions.text_renderer import TextRenderer, render_text_choice
from tollgate.ingress.shared.accounts import CompletionFrames


class CompletionRenderer(CompletionFrames):
    """Renders one reply as a legacy completion, streamed or not."""

    def __init__(
        self, call: ParsedCall, served: ServedBy, *, episode_id: str, credits_per_usd: Decimal
    ) -> None:
        super().__init__(
            served,
            episode_id=episode_id,
            credits_per_usd=credits_per_usd,
            tells_routing=call.tells_routing,
            usage_on_finish=call.usage_on_finish,
        )
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
            case UsageReported() | Output() | Partial():
                return b""
            case Ended():
                return self._finish_frame(writer.finish(event))
            case _:
                assert_never(event)

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        choices: list[JsonValue] = [
            render_text_choice(index, response, prompt=self._prompts[index])
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
