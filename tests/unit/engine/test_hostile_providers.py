"""What a provider sends cannot keep a generation from being settled, nor fill the memory.

Keeps C26, C65, C82.
"""

import json
from typing import Any

import pytest
from pydantic_core import to_json

from tests.painters import BY_TOKENS, USED, draw, home_of_painters, whole


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
