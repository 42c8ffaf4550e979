"""The events of a reply with `stream_format: sse`.

https://platform.openai.com/docs/api-reference/audio/speech-audio-delta-event (2026-11-22)
"""

from typing import Literal

from pydantic import Field, RootModel

from tollgate.ingress.shared.wire.reply_models import Accounts, Answer, ErrorObject


class SpeechUsage(Answer):
    """Usage and cost."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    characters: int = Field(description="Characters of the text that was spoken.")
    cost: float = Field(description="US dollars, exact to a billionth.")


class SpeechDelta(Answer):
    """A piece of the sound; the pieces in order are the whole."""

    type: Literal["speech.audio.delta"]
    audio: str = Field(description="The piece in base64.")


class SpeechDone(Accounts):
    """The last event: the sound is complete."""

    type: Literal["speech.audio.done"]
    usage: SpeechUsage


class SpeechFailure(Accounts):
    """The last event of a stream that broke: the sound is not complete."""

    type: Literal["error"]
    error: ErrorObject
    usage: SpeechUsage


class SpeechEvent(RootModel[SpeechDelta | SpeechDone]):
    """The data of one event."""
