"""Any fault in any request: an answer, or a 4xx in the format's own envelope that names the field.

A valid request of one client format has some of its values replaced by others, or left out, and
goes to the gateway and through the codec of some provider. The tokens of Messages are counted too.

Keeps C6, C8, C40, C41, C80, C81.
"""

import asyncio
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.asgi import Exchange
from tests.gateways import House
from tests.unit.engine.client_formats import CLIENT_FORMATS, MESSAGE, ClientFormat, exchange
from tests.unit.engine.rich_requests import RICH
from tests.unit.engine.same_conversations import SAME, Json
from tests.unit.engine.test_every_format import framed, home_of
from tests.unit.providers.shared_cases import ANSWERS
from tests.unit.web.test_api_app import Api
from tests.upstream.wires import EVERY_WIRE, Wire
from tests.virtual_time import VirtualTimeLoop

Path = tuple[str | int, ...]
COUNT_TOKENS = "/v1/messages/count_tokens"
LEFT_OUT = object()
ODD: list[Any] = [
    LEFT_OUT,
    None,
    True,
    -1,
    10**30,
    1.5,
    1e308,
    "",
    "word",
    "\x00",
    "\ud800",
    "word " * 120_000,
    "{",
    "data:image/png;base64,!",
    "http://[::1",
    [],
    [None],
    [[]],
    {},
    {"": None},
    {"type": "novelty"},
    {"role": "robot"},
    {"$ref": "#/a"},
]


def bodies_of(client: ClientFormat) -> list[Json]:
    same = [bodies[client.name] for bodies in SAME.values() if client.name in bodies]
    limits = {"model": "acme/large", client.limit: 4_000}
    return [limits | body for body in (*same, *RICH[client.name])]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for step, each in inner:
        yield (*path, step)
        yield from places(each, (*path, step))


def at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def changed(value: Any, path: Path, other: Any) -> Any:
    """A copy with another value at a place, or without it."""
    step, *rest = path
    copy = value.copy()
    if rest:
        copy[step] = changed(value[step], tuple(rest), other)
    elif other is LEFT_OUT:
        del copy[step]
    else:
        copy[step] = other
    return copy


@st.composite
def faulty(draw: st.DrawFn, client: ClientFormat) -> Json:
    bodies = st.sampled_from(bodies_of(client))
    body = draw(bodies)
    for _ in range(draw(st.integers(1, 2))):
        donor = draw(bodies)
        elsewhere = st.sampled_from([*places(donor)]).map(lambda path, body=donor: at(body, path))
        place = draw(st.sampled_from([*places(body)]))
        body = changed(body, place, draw(st.sampled_from(ODD) | elsewhere))
        if not body:
            break
    return {"stream": draw(st.booleans()), **body}


def plain(wire: Wire) -> Wire:
    """A wire whose provider sends one choice, as what is scripted here does."""
    dialect = wire.dialect.model_copy(update={"native_choices": False})
    return dataclasses.replace(wire, dialect=dialect)


async def home_at(wire: Wire) -> House:
    return await home_of(plain(wire), framed(wire, wire.write(ANSWERS["text"])))


def fields_of(client: ClientFormat) -> set[str]:
    """The names of a format's fields; a request is also refused for what a header says."""
    fields = client.row.models.request().model_json_schema(by_alias=True)["properties"]
    return {*fields, "anthropic-beta"}


def check(reply: Exchange, client: ClientFormat) -> None:
    assert reply.status is not None
    if reply.status == 200:
        return
    assert 400 <= reply.status < 500, reply.body
    error = reply.error
    if reply.status == 400 and "not valid JSON" not in error["message"]:
        assert error["param"], error
        root = error["param"].partition(".")[0].partition("[")[0]
        assert root in fields_of(client), error
        assert error["message"].endswith("."), error


every_format = pytest.mark.parametrize(
    "client", CLIENT_FORMATS.values(), ids=lambda client: client.name
)


@pytest.mark.hypothesis
@every_format
def test_c6_c40_c41_a_fault_is_named_by_its_field_and_never_a_500(client: ClientFormat) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        homes = [runner.run(home_at(wire)) for wire in EVERY_WIRE]

        @settings(suppress_health_check=list(HealthCheck))
        @given(body=faulty(client), home=st.sampled_from(homes))
        def answers_or_refuses(body: Json, home: House) -> None:
            check(runner.run(exchange(home, client.row.path, body)), client)
            assert home.journal.defects == []
            assert home.held_nano_usd == 0

        answers_or_refuses()


@pytest.mark.hypothesis
def test_c6_c40_c80_so_is_one_in_a_request_that_is_counted() -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        home = runner.run(home_at(EVERY_WIRE[0]))
        served = Api(home, "", "")

        @settings(suppress_health_check=list(HealthCheck))
        @given(body=faulty(MESSAGE))
        def counts_or_refuses(body: Json) -> None:
            headers = {"x-api-key": home.secret}
            reply = runner.run(served("POST", COUNT_TOKENS, content=body, headers=headers))
            check(reply, MESSAGE)
            assert home.journal.defects == []

        counts_or_refuses()


@every_format
async def test_c6_a_request_with_most_fields_at_once_is_answered(client: ClientFormat) -> None:
    for wire in EVERY_WIRE:
        for body in bodies_of(client)[-len(RICH[client.name]) :]:
            home = await home_at(wire)
            reply = await exchange(home, client.row.path, body)
            assert reply.status == 200 or wire.text_only, reply.body
