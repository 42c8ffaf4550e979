"""Renders a legacy completion: a stream of frames, or one whole body.

A stream is deltas, a finish frame, one frame with usage and accounts, `[DONE]`. One that breaks has
a frame with `error` and no `choices` in place of the last.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import assert_never

from pydantic import JsonValue
from pydantic_core import to_json

from tollgate.core.errors import GatewayError
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
from tollgate.core.generation import GenerationRecord
from tollgate.core.request import GenerationRequest
from tollgate.core.response import GenerationResponse
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.completions.text_renderer import TextRenderer, render_text_choice
from tollgate.ingress.shared.accounts import DONE, render_accounts, render_failure


class CompletionRenderer:
    """Renders one reply as legacy completions, streamed or whole."""

    def __init__(
        self, call: ParsedCall, served: ServedBy, *, episode_id: str, credits_per_usd: Decimal
    ) -> None:
        self._served = served
        self._episode_id = episode_id
        self._credits_per_usd = credits_per_usd
        self._usage_on_finish = call.usage_on_finish
        self._tells_routing = call.tells_routing
        self._finish = b""
        self._head = self._frame_head(Started())
        self._prompts = _echoed(call.request) if call.echoes else [""] * call.request.answers
        self._choices = [
            TextRenderer(
                choice, self._head, prompt=prompt, notes=bool(call.request.sampling.logprobs)
            )
            for choice, prompt in enumerate(self._prompts)
        ]

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Render one event of a choice; an event without frames gives no bytes."""
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
                frame = writer.finish(event)
                if self._usage_on_finish:
                    # The last finish frame is sent by `close`, with the usage.
                    frame, self._finish = self._finish, frame
                return frame and frame + b"}\n\n"
            case _:
                assert_never(event)

    def close(self, record: GenerationRecord) -> bytes:
        """Render the last frames of a finished stream: usage, then the end mark."""
        frame = self._finish if self._usage_on_finish else self._head + b',"choices":[]'
        return b"%b,%b}\n\n%b" % (frame, self._accounts(record), DONE)

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render the frames that end a stream which failed after the commit point."""
        request_id = self._served.generation_id
        return render_failure(self._head, error, request_id, self._accounts(record))

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body of a reply that is not streamed, from a response for each choice."""
        body = self._envelope(responses[0].started)
        body["choices"] = [
            render_text_choice(index, response, prompt=self._prompts[index])
            for index, response in enumerate(responses)
        ]
        return b"%b,%b}" % (to_json(body)[:-1], self._accounts(record))

    def _envelope(self, started: Started) -> dict[str, JsonValue]:
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

    def _frame_head(self, started: Started) -> bytes:
        return b"data: " + to_json(self._envelope(started))[:-1]

    def _accounts(self, record: GenerationRecord) -> bytes:
        return render_accounts(
            record,
            self._served,
            credits_per_usd=self._credits_per_usd,
            tells_routing=self._tells_routing,
        )


def _echoed(request: GenerationRequest) -> list[str]:
    """Return the text of the prompt of each choice."""
    return [prompt for prompt in request.prompts for _ in range(request.choices)]
