"""Renders sound: as it is, or in OpenAI's events."""

from base64 import b64encode
from collections.abc import Sequence
from decimal import Decimal

from pydantic_core import to_json
from typing_extensions import override

from tollgate.core.errors import GatewayError
from tollgate.core.events import Output, StreamEvent
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.ingress.base import ParsedWork, ServedBy
from tollgate.ingress.errors import openai_error
from tollgate.ingress.shared.accounts import render_accounts
from tollgate.ingress.shared.whole_replies import WholeReplyRenderer


class SoundRenderer(WholeReplyRenderer):
    """Renders the bytes of the sound and nothing else."""

    @override
    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Return the next piece of the sound."""
        return b"".join(event.pieces) if isinstance(event, Output) else b""

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Return all of the sound."""
        return b"".join(responses[0].output)


class SpeechEventsRenderer:
    """Renders the sound in events, the last one with usage and price."""

    def __init__(self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal) -> None:
        self._call = call
        self._served = served
        self._credits_per_usd = credits_per_usd

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Return an event for each piece of the sound."""
        return b"".join(map(_delta, event.pieces)) if isinstance(event, Output) else b""

    def close(self, record: GenerationRecord) -> bytes:
        """Return the event that says that the sound is complete."""
        return b'data: {"type":"speech.audio.done",%b}\n\n' % self._accounts(record)

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Return the event that says that the sound is not complete."""
        broken = to_json(openai_error(error, self._served.generation_id))
        return b'data: {"type":"error","error":%b,%b}\n\n' % (broken, self._accounts(record))

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Return all events."""
        return b"".join(map(_delta, responses[0].output)) + self.close(record)

    def _accounts(self, record: GenerationRecord) -> bytes:
        usage: dict[str, JsonValue] = {
            "input_tokens": record.usage.input_tokens,
            "output_tokens": record.usage.output_tokens or 0,
            "total_tokens": record.usage.total_tokens,
            "characters": record.usage.characters or 0,
        }
        return render_accounts(
            record,
            self._served,
            credits_per_usd=self._credits_per_usd,
            tells_routing=self._call.tells_routing,
            usage=usage,
        )


def _delta(piece: bytes) -> bytes:
    return b'data: {"type":"speech.audio.delta","audio":"%b"}\n\n' % b64encode(piece)
