"""OpenAI's speech as a client format."""

from collections.abc import Mapping
from decimal import Decimal

from tollgate.core.ids import IdSource
from tollgate.ingress.base import NO_HEADERS, ParsedWork, Renderer, ServedBy
from tollgate.ingress.shared.whole_replies import WholeReplies
from tollgate.ingress.work.speech.parse import parse_speech
from tollgate.ingress.work.speech.render import SoundRenderer, SpeechEventsRenderer


class Speech(WholeReplies):
    """The format of POST /v1/audio/speech; its replies are sound, or events with sound."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a request; raise RequestError with the field at fault. No header is read."""
        return parse_speech(body)

    def renderer(self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal) -> Renderer:
        """Return a new renderer for one reply, in the form that its caller requested."""
        if call.media_type:
            return SoundRenderer()
        return SpeechEventsRenderer(call, served, credits_per_usd=credits_per_usd)
