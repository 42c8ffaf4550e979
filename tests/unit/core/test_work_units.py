"""The units of work on inputs: what is likely, by which prices are estimated, and what is held.

Keeps C62, C65, C81, C82.
"""

from typing import Any

import pytest

from tollgate.core.content import Image, MediaUrl, Text
from tollgate.core.usage import Units
from tollgate.core.work.images import ImageRequest
from tollgate.core.work.moderation import ModerationRequest
from tollgate.core.work.recording import Recording
from tollgate.core.work.speech import SpeechRequest
from tollgate.core.work.transcription import TranscriptionRequest

CAT = Image(source=MediaUrl(url="https://pictures.example/cat.png"))


def speech(text: str = "a" * 100, **options: Any) -> SpeechRequest:
    return SpeechRequest(model="m", text=text, voice="alloy", **options)


def images(**options: Any) -> ImageRequest:
    return ImageRequest(model="m", prompt="two cats", **options)


def transcription(*, seconds: int, seconds_max: int) -> TranscriptionRequest:
    recording = Recording(content=b"", format="mp3", seconds=seconds, seconds_max=seconds_max)
    return TranscriptionRequest(model="m", recording=recording)


@pytest.mark.parametrize(
    ("work", "likely", "most"),
    [
        (speech(), 130, 256 + 800),
        # Half the speed takes twice the time; what is spoken faster is held as if it were not.
        (speech(speed=0.5), 260, 256 + 1_600),
        (speech(speed=2.0), 130, 256 + 800),
        # Characters that tokenizers have no word for are several bytes.
        (speech("ä" * 100), 260, 256 + 1_600),
        (speech(instructions="slowly"), 130, 256 + 800),
    ],
)
def test_c62_c82_tokens_of_speech_follow_the_text_and_its_speed(
    work: SpeechRequest, likely: int, most: int
) -> None:
    assert work.units == Units(characters=100, output_tokens=likely)
    assert work.units_max == Units(characters=100, output_tokens=most)


@pytest.mark.parametrize(
    ("sound", "output_bytes", "tokens"),
    [
        ("mp3", 0, 0),
        ("mp3", 1, 1),
        ("mp3", 800, 1),
        ("mp3", 801, 2),
        ("pcm", 2_400, 1),
        ("opus", 3_000, 10),
        # Not more than the whole text has.
        ("mp3", 1_000_000, 130),
    ],
)
def test_c65_c82_tokens_of_delivered_speech_follow_its_bytes(
    sound: Any, output_bytes: int, tokens: int
) -> None:
    assert speech(sound=sound).likely_output_tokens(output_bytes) == tokens


@pytest.mark.parametrize(
    ("seconds", "seconds_max", "likely", "most"),
    [
        (10, 20, Units(media_tokens=100, output_tokens=40, audio_seconds=10), 2_048),
        (10, 256, Units(media_tokens=100, output_tokens=40, audio_seconds=10), 2_048),
        (10, 257, Units(media_tokens=100, output_tokens=40, audio_seconds=10), 2_056),
    ],
)
def test_c62_c82_units_of_a_recording_follow_its_seconds(
    seconds: int, seconds_max: int, likely: Units, most: int
) -> None:
    work = transcription(seconds=seconds, seconds_max=seconds_max)
    assert work.units == likely
    assert work.units_max == Units(
        media_tokens=32 * seconds_max, output_tokens=most, audio_seconds=seconds_max
    )


@pytest.mark.parametrize(
    ("options", "likely", "most"),
    [
        (
            {},
            Units(images=1, output_tokens=1_700),
            Units(images=1, output_tokens=16_384),
        ),
        (
            {"count": 3, "partial_images": 2},
            Units(images=3, output_tokens=3 * 1_900),
            Units(images=3, output_tokens=3 * 16_584),
        ),
        # Each picture reads those that it is made of, and the mask.
        (
            {"count": 2, "images": (CAT,), "mask": CAT},
            Units(images=2, media_tokens=6_000, output_tokens=3_400),
            Units(images=2, media_tokens=2 * 2 * 8_192, output_tokens=2 * 16_384),
        ),
        (
            {"quality": "high"},
            Units(images=1, output_tokens=1_700),
            Units(images=1, output_tokens=16_384),
        ),
        (
            {"quality": "xhigh"},
            Units(images=1, output_tokens=1_700),
            Units(images=1, output_tokens=2 * 16_384),
        ),
        (
            {"quality": "max"},
            Units(images=1, output_tokens=1_700),
            Units(images=1, output_tokens=4 * 16_384),
        ),
    ],
)
def test_c62_c82_units_of_pictures_follow_their_number_previews_and_quality(
    options: dict[str, Any], likely: Units, most: Units
) -> None:
    work = images(**options)
    assert (work.units, work.units_max) == (likely, most)


@pytest.mark.parametrize(
    ("subjects", "likely", "most"),
    [
        ([("a" * 1_000,)], 1, 1),
        ([("a" * 1_001,)], 2, 2),
        ([("a",), ("b",)], 2, 2),
        # Parts of one input are read together, or each by itself.
        ([("a" * 400, "b" * 400)], 1, 2),
        # Characters are counted, or bytes.
        ([("ä" * 1_000,)], 1, 2),
    ],
)
def test_c62_c81_units_of_text_are_begun_by_each_input_or_each_part(
    subjects: list[tuple[str, ...]], likely: int, most: int
) -> None:
    work = ModerationRequest(
        model="m",
        subjects=tuple(tuple(Text(text=text) for text in subject) for subject in subjects),
    )
    assert (work.units.text_units, work.units_max.text_units) == (likely, most)
