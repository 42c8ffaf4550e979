"""What is refused after parsing is named by the field that the caller's format has for it.

Keeps C13, C40, C41.
"""

import pytest

from tests.gateways import house
from tests.unit.engine.client_formats import CHAT, CLIENT_FORMATS, LEGACY, MESSAGE, RESPONSE
from tests.unit.engine.same_conversations import SAME
from tests.unit.engine.test_required_parameters import adapting

LONG = "word " * 200_000
FIELDS = {CHAT.name: "messages", LEGACY.name: "prompt", MESSAGE.name: "messages"} | {
    RESPONSE.name: "input"
}
TOO_LONG = {
    CHAT.name: {"messages": [{"role": "user", "content": LONG}]},
    LEGACY.name: {"prompt": LONG},
    MESSAGE.name: {"messages": [{"role": "user", "content": LONG}]},
    RESPONSE.name: {"input": LONG},
}


@pytest.mark.parametrize("name", FIELDS)
async def test_c41_a_prompt_that_is_too_long_names_the_field_that_holds_it(name: str) -> None:
    reply = await CLIENT_FORMATS[name].ask(await house(), TOO_LONG[name], stream=True)
    assert (reply.status, reply.error["code"]) == (400, "context_length_exceeded")
    assert reply.error["param"] == FIELDS[name]


@pytest.mark.parametrize("name", SAME["image"])
async def test_c41_a_picture_that_no_model_reads_names_the_field_that_holds_it(name: str) -> None:
    home = await house()
    reply = await CLIENT_FORMATS[name].ask(home, SAME["image"][name], stream=False)
    assert (reply.status, reply.error["code"]) == (400, "image_not_supported_by_model")
    assert reply.error["param"] == FIELDS[name]


@pytest.mark.parametrize(
    ("name", "field"),
    [
        (CHAT.name, "user"),
        (LEGACY.name, "user"),
        (MESSAGE.name, "metadata.user_id"),
        (RESPONSE.name, "user"),
    ],
)
async def test_c13_a_parameter_that_nobody_takes_is_named_as_the_format_does(
    name: str, field: str
) -> None:
    home = await house(codec=adapting({"near": ("user",), "far": ("user",)}))
    body = SAME["end user"][name] | {"provider": {"require_parameters": True}}
    reply = await CLIENT_FORMATS[name].ask(home, body, stream=False)
    assert (reply.status, reply.error["param"]) == (400, field)
