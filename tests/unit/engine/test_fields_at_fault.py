"""A fault is refused in the format's own envelope, by the field that the format has for it.

Keeps C13, C40, C41.
"""

import pytest

from tests.cells import cells
from tests.gateways import house
from tests.unit.engine.client_formats import (
    CHAT,
    CLIENT_FORMATS,
    LEGACY,
    MESSAGE,
    RESPONSE,
    ClientFormat,
    exchange,
)
from tests.unit.engine.same_conversations import SAME, Json
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


_HI = {"role": "user", "content": "Hi"}


def _custom_chat(definition: str) -> Json:
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": definition}}
    tool = {"type": "custom", "custom": {"name": "x", "format": grammar}}
    return {"messages": [_HI], "tools": [tool]}


def _custom_response(definition: str) -> Json:
    grammar = {"type": "grammar", "syntax": "lark", "definition": definition}
    return {"input": "Hi", "tools": [{"type": "custom", "name": "x", "format": grammar}]}


_ORPHAN = {
    CHAT.name: {"role": "tool", "tool_call_id": "c", "content": "x"},
    MESSAGE.name: {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}],
    },
    RESPONSE.name: {"type": "function_call_output", "call_id": "c", "output": "x"},
}
_NOVEL = {"role": "user", "content": [{"type": "novelty"}]}
FAULTS = [
    (CHAT, {"messages": "Hi"}, "messages"),
    (CHAT, {"messages": [_NOVEL]}, "messages[0].content[0].type"),
    (CHAT, {"messages": [_HI, {"role": "robot"}]}, "messages[1].role"),
    (CHAT, {"messages": [_HI, _ORPHAN[CHAT.name]]}, "messages[1].tool_call_id"),
    (CHAT, {"messages": [_HI], "temperature": "hot"}, "temperature"),
    *(
        (client, custom(definition), f"tools[0].{place}.definition")
        for definition in ("", "x" * 65_537)
        for client, custom, place in (
            (CHAT, _custom_chat, "custom.format.grammar"),
            (RESPONSE, _custom_response, "format"),
        )
    ),
    (LEGACY, {}, "prompt"),
    (LEGACY, {"prompt": [1, 2]}, "prompt"),
    (LEGACY, {"prompt": "Hi", "max_tokens": "many"}, "max_tokens"),
    (MESSAGE, {"messages": [_HI], "max_tokens": None}, "max_tokens"),
    (MESSAGE, {"messages": [_NOVEL]}, "messages[0].content[0].type"),
    (MESSAGE, {"messages": [_HI, {"role": "robot"}]}, "messages[1].role"),
    (
        MESSAGE,
        {"messages": [_HI, _ORPHAN[MESSAGE.name]]},
        "messages[1].content[0].tool_use_id",
    ),
    (MESSAGE, {"messages": [_HI], "tools": [{"type": "novelty"}]}, "tools[0].type"),
    (RESPONSE, {}, "input"),
    (RESPONSE, {"input": [{"type": 7}]}, "input[0].type"),
    (RESPONSE, {"input": [_NOVEL]}, "input[0].content[0].type"),
    (RESPONSE, {"input": [_HI, _ORPHAN[RESPONSE.name]]}, "input[1].call_id"),
    (RESPONSE, {"input": "Hi", "text": {"format": {"type": "novelty"}}}, "text.format.type"),
]


@cells(("client", "body", "field"), FAULTS, ids=[f"{it.name}-{field}" for it, _, field in FAULTS])
async def test_c40_a_fault_names_its_place_in_the_formats_own_envelope(
    client: ClientFormat, body: Json, field: str
) -> None:
    home = await house()
    reply = await exchange(home, client.row.path, {client.limit: 4_000, **body})
    error = reply.error
    assert (reply.status, error["code"], error["param"]) == (400, "invalid_request", field)
    assert error["message"].startswith(field)
    assert ("type" in reply.json) == (client is MESSAGE)
    assert home.near.requests == home.journal.defects == []
