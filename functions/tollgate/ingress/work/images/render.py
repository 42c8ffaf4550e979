"""Renders pictures as OpenAI does: in one body, or previews and pictures as events.

https://developers.openai.com/api/reference/resources/images (2026-11-22). The events have no end
mark.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from msgspec.json import decode as decode_json
from pydantic_core import to_json

from tollgate.core.errors import GatewayError
from tollgate.core.events import Output, Partial, StreamEvent
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.usage import Usage
from tollgate.core.work.images import ImagePiece, ImageRequest
from tollgate.ingress.base import ParsedWork, ServedBy
from tollgate.ingress.errors import openai_error
from tollgate.ingress.shared.accounts import render_accounts

_BACKGROUNDS = frozenset({"transparent", "opaque"})
_QUALITIES = frozenset({"low", "medium", "high", "xhigh", "max"})


class ImageRenderer:
    """Renders one reply, streamed or whole."""

    def __init__(
        self,
        call: ParsedWork,
        served: ServedBy,
        *,
        events: Literal["image_generation", "image_edit"],
        credits_per_usd: Decimal,
    ) -> None:
        if not isinstance(call.request, ImageRequest):
            raise TypeError("no request for pictures")
        self._asked = call.request
        self._tells_routing = call.tells_routing
        self._served = served
        self._events = events
        self._credits_per_usd = credits_per_usd
        self._made: list[ImagePiece] = []

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Render a preview; a picture is rendered with the bill."""
        match event:
            case Partial(piece=piece):
                made = decode_json(piece, type=ImagePiece)
                return self._frame(
                    "partial_image", made, {"partial_image_index": made.preview or 0}
                )
            case Output(pieces=pieces):
                self._made += (decode_json(piece, type=ImagePiece) for piece in pieces)
            case _:
                pass
        return b""

    def close(self, record: GenerationRecord) -> bytes:
        """Render each picture; the last event has the usage and the price of them all."""
        nothing: dict[str, JsonValue] = {"usage": _usage(Usage())}
        *before, last = self._made
        frames = [self._frame("completed", made, nothing) for made in before]
        return b"".join([*frames, self._frame("completed", last, {}, self._accounts(record))])

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render the event that ends a stream which failed after the commit point."""
        broken = to_json(openai_error(error, self._served.generation_id))
        return b'event: error\ndata: {"type":"error","error":%b,%b}\n\n' % (
            broken,
            self._accounts(record),
        )

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body of a reply that is not streamed."""
        made = [decode_json(piece, type=ImagePiece) for piece in responses[0].output]
        body: dict[str, JsonValue] = {
            "created": self._served.created_s,
            "data": [_shown(each) for each in made],
            **self._stated(made[0]),
        }
        return b"%b,%b}" % (to_json(body)[:-1], self._accounts(record))

    def _stated(self, made: ImagePiece) -> dict[str, JsonValue]:
        """Return what OpenAI states of all pictures at once, as far as it is known."""
        background = made.background or self._asked.background
        quality = made.quality or self._asked.quality
        stated = {
            "background": background if background in _BACKGROUNDS else None,
            "output_format": made.output_format,
            "quality": quality if quality in _QUALITIES else None,
            "size": made.size,
        }
        return {name: value for name, value in stated.items() if value is not None}

    def _frame(
        self, name: str, made: ImagePiece, more: dict[str, JsonValue], accounts: bytes = b""
    ) -> bytes:
        kind = f"{self._events}.{name}"
        event: dict[str, JsonValue] = {
            "type": kind,
            **_shown(made),
            "created_at": self._served.created_s,
            "background": "auto",
            "output_format": self._asked.output_format or "png",
            "quality": "auto",
            "size": self._asked.size or "auto",
            **self._stated(made),
            **more,
        }
        written = to_json(event)
        if accounts:
            written = b"%b,%b}" % (written[:-1], accounts)
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), written)

    def _accounts(self, record: GenerationRecord) -> bytes:
        return render_accounts(
            record,
            self._served,
            credits_per_usd=self._credits_per_usd,
            tells_routing=self._tells_routing,
            usage=_usage(record.usage),
        )


def _shown(made: ImagePiece) -> dict[str, JsonValue]:
    shown = {
        "b64_json": made.b64_json,
        "url": made.url,
        "revised_prompt": made.revised_prompt,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _usage(usage: Usage) -> dict[str, JsonValue]:
    read, written = usage.input_tokens, usage.output_tokens or 0
    seen, drawn = usage.image_input_tokens or 0, usage.image_output_tokens or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {"text_tokens": read - seen, "image_tokens": seen},
        "output_tokens": written,
        "output_tokens_details": {"text_tokens": written - drawn, "image_tokens": drawn},
        "total_tokens": read + written,
    }
