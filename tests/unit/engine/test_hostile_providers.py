"""What a provider sends cannot keep a generation from being settled, nor fill the memory.

Keeps C26, C65, C82.
"""

import json
from typing import Any

import pytest
from pydantic_core import to_json

from tests.painters import BY_TOKENS, DRAWN, USED, draw, events_of, home_of_painters, whole
from tests.scripted import frame
from tests.unit.engine.scribes import home_of_scribes, write_down


def nested(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize("levels", [20, 200, 900])
async def test_c26_c65_usage_of_any_depth_is_settled_and_can_be_shown(levels: int) -> None:
    used = {**USED, "padding": nested(levels)}
    home = await home_of_painters([whole(usage=used)], rates=BY_TOKENS, dialect={"tokens": True})
    reply = await draw(home)
    assert (reply.status, home.record.usage.output_tokens) == (200, 400)
    assert home.spent_nano_usd == home.record.cost_nano_usd > 0
    assert to_json(home.record.raw_usage).count(b"[") < 16


async def test_c82_a_stream_of_pictures_without_end_is_left() -> None:
    picture = frame({"type": "image_generation.completed", "b64_json": DRAWN, "usage": USED})
    read_on = AssertionError("it was read on")
    home = await home_of_painters([picture, picture, read_on], dialect={"takes": ("stream",)})
    reply = await draw(home, stream=True, n=1, provider={"only": ["near"]})
    assert (reply.status, reply.json["error"]["message"]) == (
        502,
        "The provider near sent more pictures than requested.",
    )


async def test_c82_stretches_of_a_transcript_without_end_are_left() -> None:
    stretch = {"type": "transcript.text.segment", "start": 0, "end": 1, "text": "a" * 1_000_000}
    home = await home_of_scribes([frame(stretch)] * 100, dialect={"streams": True})
    reply = await write_down(home, stream="true")
    assert len(events_of(reply)) == 17
    assert events_of(reply)[-1]["error"]["code"] == "provider_unavailable"
    assert home.record.outcome == "error"
