"""C82: pictures and sound are billed at their own rates, reported or estimated.

Keeps C26, C66, C82.
"""

import pytest

from tests.painters import edit, home_of_painters, whole
from tests.scripted import Answer, frame
from tests.unit.engine.scribes import home_of_scribes, write_down
from tests.unit.engine.test_speech import EVENTS, delta, done, home_of_voices, sound, speak
from tests.unit.routing.catalogs import price
from tollgate.core.records.generation import GenerationRecord

SPOKEN = price("1", "0", audio_output="12")


def quantities(record: GenerationRecord) -> dict[str, int]:
    return {line.item: line.quantity for line in record.lines}


async def test_c66_c82_estimated_pictures_have_the_rate_of_pictures() -> None:
    rates = price("5", "10", image_input="8", image_output="30")
    home = await home_of_painters([whole()], rates=rates, dialect={"tokens": True})
    assert (await edit(home)).status == 200
    record = home.record
    assert record.usage_source == "estimated"
    assert quantities(record).keys() == {"input", "input_image", "output_image"}
    assert quantities(record)["output_image"] == 1_700


# A server may count seconds where the price is by tokens.
@pytest.mark.parametrize("reported", [{}, {"usage": {"type": "duration", "seconds": 12}}])
async def test_c66_c82_estimated_recordings_have_the_rate_of_sound(
    reported: dict[str, object],
) -> None:
    rates = {"input": "1", "audio_input": "6", "output": "10"}
    home = await home_of_scribes([frame({"text": "a"} | reported)], rates=rates)
    assert (await write_down(home)).status == 200
    # 12 s of 10 tokens each, and 4 for what is said.
    assert quantities(home.record) == {"input_audio": 120, "output": 48}
    assert home.record.usage_source == "estimated"


@pytest.mark.parametrize(
    ("answer", "dialect", "spoken"),
    [
        ([delta(b"one"), done(input_tokens=7, output_tokens=20)], EVENTS, 20),
        (sound(b"x"), {"usage": "none"}, 9),
    ],
)
async def test_c26_c66_c82_speech_has_the_rate_of_sound(
    answer: Answer, dialect: dict[str, object], spoken: int
) -> None:
    home = await home_of_voices(answer, rates=SPOKEN, dialect=dialect)
    assert (await speak(home)).status == 200
    assert quantities(home.record)["output_audio"] == spoken
    assert home.record.cost_nano_usd <= home.record.held_nano_usd
