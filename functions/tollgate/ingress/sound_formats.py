"""The rows of the client formats of sound."""

from typing import Final

from tollgate.core.ids import IdSource
from tollgate.ingress.base import Ingress
from tollgate.ingress.format_row import FormatModels, IngressFormat


def _make_speech(ids: IdSource) -> Ingress:
    from tollgate.ingress.speech import Speech

    return Speech(ids)


def _load_speech_models() -> FormatModels:
    from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope
    from tollgate.ingress.speech.parse import MEDIA_TYPES
    from tollgate.ingress.speech.wire.speech_events import SpeechEvent, SpeechFailure
    from tollgate.ingress.speech.wire.speech_request import SpeechBody

    return FormatModels(
        request=SpeechBody,
        reply=None,
        media_types=tuple(MEDIA_TYPES.values()),
        event=SpeechEvent,
        failure=SpeechFailure,
        error=ErrorEnvelope,
    )


SPEECH: Final = IngressFormat(
    name="speech",
    path="/v1/audio/speech",
    make=_make_speech,
    load_models=_load_speech_models,
    tag="speech",
    summary="Create Speech",
    description="Speak a text; the sound leaves as it comes, and is billed to the key.",
    operation_id="create_speech",
)
