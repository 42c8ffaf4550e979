"""Models for text-to-speech requests and the events in replies.

https://platform.openai.com/docs/api-reference/audio/createSpeech (2026-11-22)
https://platform.openai.com/docs/api-reference/audio/speech-audio-delta-event (2026-11-22)
"""

from typing import Annotated, Final, Literal

from pydantic import Field, RootModel, Tag

from tollgate.core.request import SoundFormat
from tollgate.ingress.shared.wire.reply_models import Accounts, Answer, ErrorObject
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields
from tollgate.ingress.shared.wire.request_model import Name, Wire, by_shape

INPUT_CHARACTERS_MAX: Final = 65_536
"""The maximum number of characters in a text; every endpoint has a lower limit."""
INSTRUCTIONS_CHARACTERS_MAX: Final = 4_096


class OwnVoice(Wire):
    """A custom voice in the provider account."""

    id: Name


_Voice = Annotated[
    Annotated[Name, Tag("<string>")] | Annotated[OwnVoice, Tag("<object>")],
    by_shape("a string or an object with the field id"),
]


class SpeechBody(EndUser, RoutingFields):
    """The body of POST /v1/audio/speech; null means the same as omitting a field."""

    input: Annotated[str, Field(min_length=1, max_length=INPUT_CHARACTERS_MAX)] = Field(
        description="The text to speak; the model limits its length."
    )
    voice: _Voice = Field(description="The name of a voice, or the id of a custom voice.")
    instructions: Annotated[str, Field(max_length=INSTRUCTIONS_CHARACTERS_MAX)] | None = Field(
        default=None, description="How to speak, for models that accept instructions."
    )
    response_format: SoundFormat | None = Field(
        default=None, description="The audio format; `mp3` by default."
    )
    speed: Annotated[float, Field(ge=0.25, le=4)] | None = None
    stream_format: Literal["audio", "sse"] | None = Field(
        default=None, description="`sse` sends the audio in events, and usage at the end."
    )


class SpeechUsage(Answer):
    """Usage and cost."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    characters: int = Field(description="The number of characters in the spoken text.")
    cost: float = Field(description="US dollars, exact to a billionth.")


class SpeechDelta(Answer):
    """A piece of the audio; all pieces in order make up the complete audio."""

    type: Literal["speech.audio.delta"]
    audio: str = Field(description="The piece as base64.")


class SpeechDone(Accounts):
    """The last event, after complete audio."""

    type: Literal["speech.audio.done"]
    usage: SpeechUsage


class SpeechFailure(Accounts):
    """The last event of a failed stream, after incomplete audio."""

    type: Literal["error"]
    error: ErrorObject
    usage: SpeechUsage


class SpeechEvent(RootModel[SpeechDelta | SpeechDone]):
    """The JSON data of an event."""
