"""OpenAI's transcriptions and translations as client formats."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from typing_extensions import override

from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.ingress.base import NO_HEADERS, ErrorReply, Routed, ServedBy
from tollgate.ingress.errors import openai_reply
from tollgate.ingress.shared.whole_replies import WholeReplies
from tollgate.ingress.work.transcription.parse import (
    ParsedTranscription,
    parse_transcription,
    parse_translation,
)
from tollgate.ingress.work.transcription.render import TranscriptRenderer

_BODY_HINT: Final = "Send a file_id (POST /v1/files/presigned) or url in place of file."
_RECORDING_HINT: Final = "Cut it into pieces, or compress it."
_Parse = Callable[[bytes, Mapping[str, str]], ParsedTranscription]


class _Transcripts(WholeReplies):
    """A format whose requests `parse` reads; its replies need no ids beside their record's."""

    def __init__(self, parse: _Parse) -> None:
        self._parse = parse

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedTranscription:
        """Parse a form, or JSON; raise RequestError with the field at fault."""
        return self._parse(body, headers)

    def renderer(
        self, call: ParsedTranscription, served: ServedBy, *, credits_per_usd: Decimal
    ) -> TranscriptRenderer:
        """Return a new renderer for one reply."""
        return TranscriptRenderer(call, served, credits_per_usd=credits_per_usd)

    @override
    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """Render an error in OpenAI's envelope, with a way that a large recording can take."""
        hint = _BODY_HINT if error.param is None else _RECORDING_HINT
        return openai_reply(error, request_id, routed, upload_hint=hint)


class Transcriptions(_Transcripts):
    """The format of POST /v1/audio/transcriptions."""

    def __init__(self, ids: IdSource) -> None:
        del ids
        super().__init__(parse_transcription)


class Translations(_Transcripts):
    """The format of POST /v1/audio/translations."""

    def __init__(self, ids: IdSource) -> None:
        del ids
        super().__init__(parse_translation)
