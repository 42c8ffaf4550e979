"""The rows of the client formats of sound."""

from typing import Final

from pydantic import BaseModel

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


def _make_transcriptions(ids: IdSource) -> Ingress:
    from tollgate.ingress.transcription import Transcriptions

    return Transcriptions()


def _make_translations(ids: IdSource) -> Ingress:
    from tollgate.ingress.transcription import Translations

    return Translations()


def _load_transcription_models() -> FormatModels:
    from tollgate.ingress.transcription.wire.transcription_request import (
        TranscriptionBody,
        TranscriptionForm,
    )

    return _transcript_models(TranscriptionBody, TranscriptionForm)


def _load_translation_models() -> FormatModels:
    from tollgate.ingress.transcription.wire.transcription_request import (
        TranslationBody,
        TranslationForm,
    )

    return _transcript_models(TranslationBody, TranslationForm)


def _transcript_models(request: type[BaseModel], form: type[BaseModel]) -> FormatModels:
    from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope
    from tollgate.ingress.transcription.parse import TEXT_TYPES
    from tollgate.ingress.transcription.wire.transcription_reply import (
        TranscriptEvent,
        TranscriptFailure,
        TranscriptReply,
    )

    return FormatModels(
        request=request,
        reply=TranscriptReply,
        event=TranscriptEvent,
        failure=TranscriptFailure,
        error=ErrorEnvelope,
        form=form,
        media_types=tuple(sorted(set(TEXT_TYPES.values()))),
    )


TRANSCRIPTIONS: Final = IngressFormat(
    name="transcriptions",
    path="/v1/audio/transcriptions",
    make=_make_transcriptions,
    load_models=_load_transcription_models,
    tag="transcription",
    summary="Create Transcription",
    description="Write down what a recording says, in OpenAI's format; billed to the key.",
    operation_id="create_transcription",
)
TRANSLATIONS: Final = IngressFormat(
    name="translations",
    path="/v1/audio/translations",
    make=_make_translations,
    load_models=_load_translation_models,
    tag="transcription",
    summary="Create Translation",
    description="Write in English what a recording says, in OpenAI's format; billed to the key.",
    operation_id="create_translation",
)
