"""A request to turn text into speech."""

from collections.abc import Mapping
from typing import ClassVar, Final

from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.request import Need, SoundFormat
from tollgate.core.usage import Units, Usage
from tollgate.core.work.base import InputWork
from tollgate.core.work.kinds import WorkKind

# 4,096 characters of English are 877 tokens and become 268 s of speech at 20 audio tokens per
# second, that is, 1.3 tokens per byte. https://s-anand.net/blog/openai-tts-cost (2025-11-02)
_SOUND_TOKENS_PER_BYTE: Final = 1.3
# The upper bound is higher, because a number read out as words is ten times as long as its digits,
# and instructions may ask for slow speech.
_SOUND_TOKENS_PER_BYTE_MAX: Final = 8
_SOUND_TOKENS_MIN: Final = 256
# Bytes per second: derived from the sample size for WAV and PCM, taken from the source above for
# MP3, and from usual bit rates for the other formats.
_BYTES_PER_SOUND_TOKEN: Final[Mapping[SoundFormat, int]] = {
    "mp3": 800,
    "opus": 300,
    "aac": 800,
    "flac": 1_200,
    "wav": 2_400,
    "pcm": 2_400,
}


class SpeechRequest(InputWork, frozen=True, kw_only=True):
    """A text, and the voice and format in which to speak it."""

    kind: ClassVar[WorkKind] = "speech"

    text: str
    voice: str
    is_own_voice: bool = False
    """True if `voice` is the id of a custom voice that the caller's account created."""
    instructions: str | None = None
    sound: SoundFormat = "mp3"
    speed: float | None = None
    """The speed as a multiple of normal speed; None for the model's default."""

    @property
    @override
    def own_texts(self) -> tuple[str, ...]:
        return (self.text, *([self.instructions] if self.instructions else ()))

    @property
    @override
    def bytes_per_input(self) -> tuple[int, ...]:
        return (sum(len(text.encode()) for text in self.own_texts),)

    @property
    @override
    def needs(self) -> frozenset[Need]:
        return frozenset({self.sound})

    @property
    @override
    def units(self) -> Units:
        return Units(
            characters=len(self.text), output_tokens=self._sound_tokens(_SOUND_TOKENS_PER_BYTE)
        )

    @property
    @override
    def units_max(self) -> Units:
        most = self._sound_tokens(_SOUND_TOKENS_PER_BYTE_MAX)
        return Units(characters=len(self.text), output_tokens=_SOUND_TOKENS_MIN + most)

    @override
    def likely_output_tokens(self, output_bytes: int) -> int:
        delivered = -(-output_bytes // _BYTES_PER_SOUND_TOKEN[self.sound])
        return min(self.units.output_tokens, delivered)

    @override
    def by_medium(self, likely: Usage) -> Usage:
        return replace(likely, audio_output_tokens=likely.output_tokens)

    def _sound_tokens(self, per_byte: float) -> int:
        slowness = 1 / min(self.speed or 1, 1)
        return round(len(self.text.encode()) * per_byte * slowness)
