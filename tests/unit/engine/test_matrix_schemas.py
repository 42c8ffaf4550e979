"""The cells of the matrix against the published schemas, where they lie beside the recordings.

What the conversations are in each client format is a request as its owner publishes it, and so are
the replies, the events of streams and the errors. What real clients sent is answered by all.

Keeps C7, C25, C30, C40, C80.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from tests import chat_stream, message_stream, response_stream
from tests.references import client_requests, published_schema
from tests.unit.engine.client_formats import (
    CHAT,
    CLIENT_FORMATS,
    CONVERSING,
    MESSAGE,
    RESPONSE,
    ClientFormat,
    exchange,
)
from tests.unit.engine.same_conversations import SAME, Json
from tests.unit.engine.test_every_format import framed, home_of
from tests.unit.engine.test_matrix import HEARD
from tests.unit.providers.shared_cases import ANSWERS
from tests.upstream.wires import WIRES, Wire

# The names of each format's schemas. Legacy completions have none.
SCHEMAS: Mapping[str, tuple[str, str, str, str]] = {
    CHAT.name: (
        "openai.chat_completions.request",
        "openai.chat_completions.response",
        "openai.chat_completions.stream_chunk",
        "openai.error",
    ),
    MESSAGE.name: (
        "anthropic.messages.request",
        "anthropic.messages.response",
        "anthropic.messages.stream_event",
        "anthropic.error",
    ),
    RESPONSE.name: (
        "openai.responses.request",
        "openai.responses.response",
        "openai.responses.stream_event",
        "openai.error",
    ),
}


def numbered(stream: bytes) -> list[Json]:
    events = response_stream.response_events(stream)
    return [event | {"sequence_number": number} for number, event in enumerate(events)]


EVENTS = {
    CHAT.name: chat_stream.frames,
    MESSAGE.name: message_stream.events,
    RESPONSE.name: numbered,
}
published = pytest.mark.parametrize("client", CONVERSING, ids=lambda it: it.name)


# OpenAI's schema of chat has only text in the result of a tool.
BEYOND = {("image of a tool", CHAT.name)}


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(_overlapping(published_schema(name)))


def _overlapping(schema: Any) -> Any:
    """A schema whose choices may overlap, as those of OpenAI's input items do."""
    if isinstance(schema, list):
        return [_overlapping(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _overlapping(each) for name, each in schema.items() if name != "oneOf"}
    return kept | ({"anyOf": _overlapping(schema["oneOf"])} if "oneOf" in schema else {})


def _complete(value: Any) -> Any:
    """A request with two fields that OpenAI's schema requires and its clients leave out."""
    if isinstance(value, list):
        return [_complete(each) for each in value]
    if not isinstance(value, dict):
        return value
    required = {"input_image": {"detail": "auto"}, "function": {"strict": None}}
    return required.get(value.get("type", ""), {}) | {
        name: _complete(each) for name, each in value.items()
    }


def check(name: str, value: Any) -> None:
    error = best_match(validator(name).iter_errors(value))
    assert error is None, (name, error.json_path, error.message)


def stated(case: str) -> Iterator[tuple[ClientFormat, Json]]:
    for name, body in SAME[case].items():
        if name in SCHEMAS and (case, name) not in BEYOND:
            client = CLIENT_FORMATS[name]
            whole = {"model": "m", client.limit: 4_000, **body}
            yield client, _complete(whole) if client is RESPONSE else whole


@pytest.mark.parametrize("case", SAME)
def test_c80_every_request_of_the_matrix_is_as_it_is_published(case: str) -> None:
    for client, body in stated(case):
        check(SCHEMAS[client.name][0], body)


@pytest.mark.parametrize(
    ("wire", "case"), HEARD, ids=[f"{wire.name}-{case}" for wire, case in HEARD]
)
@published
async def test_c25_c30_c80_replies_and_events_are_as_they_are_published(
    wire: Wire, client: ClientFormat, case: str
) -> None:
    _, reply_schema, event_schema, _ = SCHEMAS[client.name]
    home = await home_of(wire, framed(wire, wire.write(ANSWERS[case])))
    question = SAME["text"][client.name] if wire.text_only else client.question
    plain = await client.ask(home, question, stream=False)
    check(reply_schema, plain.json)
    streamed = await client.ask(home, question, stream=True)
    for event in EVENTS[client.name](streamed.body):
        check(event_schema, json.loads(json.dumps(event, default=float)))


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@published
async def test_c40_c80_errors_are_as_they_are_published(wire: Wire, client: ClientFormat) -> None:
    home = await home_of(wire, [wire.rate_limited])
    refused = await client.ask(home, client.question, stream=True)
    check(SCHEMAS[client.name][3], refused.json)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@published
async def test_c7_c80_every_request_of_a_real_client_is_answered(
    wire: Wire, client: ClientFormat
) -> None:
    home = await home_of(wire, framed(wire, wire.write(ANSWERS["text"])))
    found = client_requests(client.row.path)
    assert len(found) >= {CHAT.name: 70, MESSAGE.name: 6, RESPONSE.name: 6}[client.name]
    for name, sent in found:
        reply = await exchange(home, client.row.path, sent | {"model": "acme/large"})
        assert reply.status == 200, (name, reply.body)
        said = client.words(client.whole(reply))
        assert said == "".join(ANSWERS["text"].words), name
