"""Counts of prompts with documents: a provider counts only what it would get.

Keeps C80.
"""

from base64 import b64encode
from typing import Any

import pytest
from msgspec.structs import replace

from tests import documents
from tests.memory.reader import InlineReader
from tests.scripted import Scripted
from tests.unit.routing.catalogs import endpoint, model
from tests.unit.web.test_token_counts import ask, counting_house, frame


def body() -> dict[str, Any]:
    source = {
        "type": "base64",
        "media_type": "application/pdf",
        "data": b64encode(documents.pdf(["Profits rose."])).decode(),
    }
    content = [{"type": "document", "source": source}]
    return {"model": "acme/large", "messages": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(
    ("takes", "how"), [(("text",), "estimate"), (("text", "image", "pdf"), "exact")]
)
async def test_c80_what_is_read_here_is_estimated(takes: tuple[str, ...], how: str) -> None:
    reads = model(endpoint("near", "large-1"), input=takes)
    home = await counting_house(
        Scripted([frame({"input_tokens": 321})]),
        plugins={"pdf": {"price": {}}},
        models={"acme/large": reads},
    )
    home.gateway = replace(home.gateway, reader=InlineReader())
    reply = await ask(home, body())
    assert (reply.status, reply.headers["x-tollgate-token-count"]) == (200, how)
    assert len(home.near.requests) == (how == "exact")
