"""Every client format at every provider format: one request, one bill, one answer, one refusal.

A cell is one conversation in one client format behind one codec and framing, streamed and whole.
What all client formats say alike must be the same request of the provider and the same bill; what a
provider cannot take is the same refusal in all of them.

Keeps C5, C10, C15, C26, C33, C37, C40, C43, C44, C80, C81.
"""

import json

import pytest

from tests.cells import cells
from tests.unit.engine.client_formats import (
    CLIENT_FORMATS,
    CONVERSING,
    ClientFormat,
    results_of,
)
from tests.unit.engine.same_conversations import SAME
from tests.unit.engine.test_every_format import SIGNED, framed, home_of
from tests.unit.providers.shared_cases import ANSWERS, cases_of
from tests.upstream.speakers import SECRETS
from tests.upstream.wires import EVERY_WIRE, WIRES, Wire

every_wire = pytest.mark.parametrize("wire", EVERY_WIRE, ids=lambda wire: wire.name)
every_format = pytest.mark.parametrize(
    "client", CLIENT_FORMATS.values(), ids=lambda client: client.name
)
# What fits into a bare prompt, whatever format it came in; the rest is refused by a server of one.
ONE_PROMPT = {"text", "effort", "budget", "sampling", "end user"}
HEARD = [(wire, case) for wire in EVERY_WIRE for case in cases_of(wire)]


@every_wire
@cells("case", SAME)
async def test_c26_c80_c81_one_conversation_is_one_request_and_one_bill(
    wire: Wire, case: str
) -> None:
    sent, bills = [], []
    for name, body in SAME[case].items():
        client = CLIENT_FORMATS[name]
        for stream in (True, False):
            home = await home_of(wire, framed(wire, wire.write(ANSWERS["text"])))
            reply = await client.ask(home, body, stream=stream)
            if wire.text_only and case not in ONE_PROMPT:
                assert (reply.status, reply.error["code"]) == (400, "invalid_request")
                assert (reply.error["param"] or "") in body
                assert reply.error["message"].startswith(reply.error["param"])
                assert home.near.requests == []
                continue
            assert reply.status == 200, reply.body
            assert client.words(client.whole(reply)) == "".join(ANSWERS["text"].words)
            record = home.record
            assert record.ingress_format == name
            bills.append((record.cost_nano_usd, record.usage, record.adapted))
            [upstream] = home.near.requests
            sent.append((upstream.path, upstream.body, upstream.headers))
    assert all(each == sent[0] for each in sent)
    assert all(each == bills[0] for each in bills)
    assert all(cost > 0 for cost, *_ in bills)


@every_format
@cells(("wire", "case"), HEARD, ids=[f"{wire.name}-{case}" for wire, case in HEARD])
async def test_c37_c80_c81_a_stream_is_the_whole_reply(
    wire: Wire, client: ClientFormat, case: str
) -> None:
    home = await home_of(wire, framed(wire, wire.write(ANSWERS[case])))
    question = SAME["text"][client.name] if wire.text_only else client.question
    streamed = await client.ask(home, question, stream=True)
    plain = await client.ask(home, question, stream=False)
    assert (streamed.status, plain.status) == (200, 200)
    ours, theirs = (client.comparable(client.whole(reply)) for reply in (streamed, plain))
    assert ours == theirs
    assert client.words(ours) == "".join(ANSWERS[case].words)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_c10_c80_q33_q34_a_tool_loop_is_one_second_turn_whatever_the_format(
    wire: Wire,
) -> None:
    answer = ANSWERS["parallel_tools"]
    home = await home_of(wire, framed(wire, wire.write(answer)))
    for client in CONVERSING:
        for stream in (True, False):
            first = client.whole(await client.ask(home, client.question, stream=stream))
            assert client.next_turn is not None
            turn = client.next_turn(first, results_of(answer.calls))
            reply = await client.ask(home, json.loads(json.dumps(turn, default=str)), stream=stream)
            assert reply.status == 200, reply.body
            assert "x-tollgate-adapted" not in reply.headers
    turns = [each.body for each in home.near.requests[1::2]]
    assert all(each == turns[0] for each in turns)
    sent = json.dumps(turns[0])
    assert SIGNED[wire.name] in sent
    for call in answer.calls:
        assert call.name in sent
        assert f"result of {call.id}" in sent
    records = home.stores.books.records.values()
    assert len({record.cost_nano_usd for record in records}) == 1


@every_format
@cells("wire", EVERY_WIRE, ids=lambda wire: wire.name)
@cells("stream", [True, False])
async def test_c40_c43_c44_an_error_before_the_first_byte_has_its_status(
    wire: Wire, client: ClientFormat, stream: bool
) -> None:
    home = await home_of(wire, [wire.rate_limited])
    reply = await client.ask(home, SAME["text"][client.name], stream=stream)
    assert (reply.status, reply.headers["retry-after"]) == (429, "7")
    assert (reply.error["type"], reply.error["code"]) == ("rate_limit_error", "provider_rate_limit")
    assert not [secret for secret in SECRETS if secret.encode() in reply.body]
    assert (home.record.outcome, home.spent_nano_usd) == ("error", 0)


@every_format
@cells("wire", EVERY_WIRE, ids=lambda wire: wire.name)
@cells("stream", [True, False])
async def test_c33_c44_an_error_after_the_first_byte_is_told_and_costs_nothing(
    wire: Wire, client: ClientFormat, stream: bool
) -> None:
    events = wire.write(ANSWERS["text"])
    home = await home_of(wire, framed(wire, [*events[: wire.head + 3], wire.overloaded]))
    reply = await client.ask(home, SAME["text"][client.name], stream=stream)
    error = client.failure(reply.body) if stream else reply.error
    assert (reply.status, error["code"]) == (200 if stream else 529, "provider_overloaded")
    assert not [secret for secret in SECRETS if secret.encode() in reply.body]
    assert (home.record.outcome, home.spent_nano_usd) == ("error", 0)
