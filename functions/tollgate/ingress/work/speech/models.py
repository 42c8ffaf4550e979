"""The request to speak a text and the events of its reply, as clients see them.

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
"""The most characters of any text; each endpoint has a lower limit of its own."""
INSTRUCTIONS_CHARACTERS_MAX: Final = 4_096


class OwnVoice(Wire):
    """A custom voice of the provider's account, by its id."""

    id: Name


_Voice = Annotated[
    Annotated[Name, Tag("<string>")] | Annotated[OwnVoice, Tag("<object>")],
    by_shape("a string or an object with id"),
]


class SpeechBody(EndUser, RoutingFields):
    """The body of POST /v1/audio/speech. Null means the same as leaving a field out."""

    input: Annotated[str, Field(min_length=1, max_length=INPUT_CHARACTERS_MAX)] = Field(
        description="The text to speak, of as many characters as the model takes."
    )
    voice: _Voice = Field(description="The name of a voice, or the id of one of your own.")
    instructions: Annotated[str, Field(max_length=INSTRUCTIONS_CHARACTERS_MAX)] | None = Field(
        default=None, description="How to speak, for models that take instructions."
    )
    response_format: SoundFormat | None = Field(
        default=None, description="The form of the sound, `mp3` if it is left out."
    )
    speed: Annotated[float, Field(ge=0.25, le=4)] | None = None
    stream_format: Literal["audio", "sse"] | None = Field(
        default=None, description="`sse` sends the sound in events, with its usage at the end."
    )


class SpeechUsage(Answer):
    """Usage and cost."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    characters: int = Field(description="Characters of the text that was spoken.")
    cost: float = Field(description="US dollars, exact to a billionth.")


class SpeechDelta(Answer):
    """A piece of the sound; all pieces in order are the whole sound."""

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
