"""One generation from admission to settlement, whatever becomes of it.

Keeps C27, C33, C34, C41, C44, C50, C61, C62, C63, C66.
"""

import pytest
from msgspec.structs import replace

from tests.gateways import house, store_is_away
from tests.scripted import FOREVER, Scripted, answers, counts, refuses, says
from tests.stores import record_of
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, LedgerError, UpstreamError
from tollgate.core.events import GrammarError, Started, StreamEvent
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import Frame
from tollgate.providers.ports.formats import codec_of
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.base import Hold

# 10 tokens at $3 and 2 at $15 per million.
COST_NANO_USD = 60_000


@pytest.mark.parametrize("stream", [True, False])
async def test_c27_a_finished_generation_is_ok_and_billed_by_usage(stream: bool) -> None:
    home = await house(near=Scripted(answers("Hello", " world")))
    reply = await home.serve(stream=stream)
    record = home.record
    assert (record.outcome, record.cost_nano_usd) == ("ok", COST_NANO_USD)
    assert (record.usage_source, record.streamed) == ("provider", stream)
    assert reply.status == 200
    assert reply.headers["x-request-id"] == record.id
    assert reply.headers["x-generation-id"] == f"gen-{record.id}"
    assert reply.headers["x-model-used"] == "acme/large"
    assert reply.headers["x-provider-used"] == "near"
    assert reply.headers["x-ratelimit-limit-requests"] == "1000"
    assert "x-fallback-from" not in reply.headers
    assert ("x-credits-used" in reply.headers) is not stream
    assert home.journal.records == [record]
    assert home.spent_nano_usd == COST_NANO_USD


async def test_c27_a_whole_answer_tells_its_cost_in_a_header() -> None:
    home = await house()
    reply = await home.serve(stream=False)
    assert reply.headers["x-credits-used"] == "0.00006"
    assert reply.headers["content-length"] == str(len(reply.body))
    assert reply.json["usage"]["cost"] == 0.00006


@pytest.mark.parametrize("stream", [True, False])
async def test_c63_a_reply_tells_what_is_left_of_the_rate(stream: bool) -> None:
    new = NewKey(workspace_id="acme", label="slow", requests_per_minute=6, burst=3)
    home = await house(near=Scripted(answers("Hello"), refuses(400)), key=new)
    answered, refused = [await home.serve(stream=stream) for _ in range(2)]
    told = [
        [reply.headers[f"x-ratelimit-{name}-requests"] for name in ("limit", "remaining", "reset")]
        for reply in (answered, refused)
    ]
    assert (answered.status, refused.status) == (200, 400)
    # A request comes back every ten seconds.
    assert told == [["3", "2", "10.000s"], ["3", "1", "20.000s"]]


@pytest.mark.parametrize("stream", [True, False])
async def test_c66_the_record_is_kept_before_the_last_bytes_leave(stream: bool) -> None:
    home = await house()
    await home.serve(stream=stream)
    assert home.trace[0] == "hold"
    assert home.trace.index("settle") < home.trace.index("end")
    assert home.trace[-3:] == (
        ["settle", "journal", "end"] if stream else ["journal", "status", "end"]
    )


@pytest.mark.parametrize("stream", [True, False])
async def test_c50_c27_a_fallback_serves_and_is_named(stream: bool) -> None:
    home = await house(near=Scripted(refuses(429)))
    reply = await home.serve("smart", stream=stream)
    record = home.record
    assert (record.outcome, record.model, record.provider) == ("ok", "acme/large", "far")
    assert reply.headers["x-model-used"] == "acme/large"
    assert reply.headers["x-fallback-from"] == "acme/small"
    assert reply.headers["x-fallback-depth"] == "2"
    # The serving endpoint's price: 10 tokens at $4, 2 at $20.
    assert record.cost_nano_usd == 80_000


async def test_c27_another_endpoint_of_the_same_model_is_no_fallback() -> None:
    home = await house(near=Scripted(refuses(429)))
    reply = await home.serve("acme/large")
    assert reply.headers["x-provider-used"] == "far"
    assert "x-fallback-from" not in reply.headers


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("upstream", "code", "status"),
    [
        (401, "provider_auth", 502),
        (400, "invalid_request", 400),
        (429, "provider_rate_limit", 429),
        (529, "provider_overloaded", 529),
        (500, "provider_unavailable", 502),
    ],
)
async def test_c33_c44_a_failure_before_the_first_token_has_its_status(
    upstream: int, code: str, status: int, stream: bool
) -> None:
    refusal = refuses(upstream, retry_after="30")
    home = await house(near=Scripted(refusal), far=Scripted(refusal))
    reply = await home.serve(stream=stream)
    record = home.record
    assert (reply.status, reply.error["code"]) == (status, code)
    assert reply.error["request_id"] == reply.headers["x-request-id"] == record.id
    assert (record.outcome, record.error, record.cost_nano_usd) == ("error", code, 0)
    assert reply.headers.get("retry-after") == ("30" if status in (429, 529) else None)
    assert home.spent_nano_usd == 0
    if code == "provider_auth":
        assert b"sk-upstream-secret" not in reply.body


async def test_c33_an_error_after_the_first_token_is_told_in_band_and_costs_nothing() -> None:
    broken = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It broke.", status=500)
    home = await house(near=Scripted([*says("Hel"), counts(10, 1), broken]))
    reply = await home.serve()
    record = home.record
    assert reply.status == 200
    assert reply.error["code"] == "provider_unavailable"
    assert b'"finish_reason":"' not in reply.body
    assert (record.outcome, record.cost_nano_usd, record.lines) == ("error", 0, ())
    [attempt] = record.attempts
    assert (attempt.error, attempt.status) == ("provider_unavailable", 500)
    assert attempt.operator_cost_nano_usd == 45_000
    assert home.spent_nano_usd == 0
    assert len(home.far.requests) == 0


async def test_c33_a_broken_stream_that_reported_nothing_costs_the_operator_what_was_said() -> None:
    home = await house(near=Scripted(says("four", "byte")))
    await home.serve()
    record = home.record
    assert (record.outcome, record.usage_source) == ("error", "estimated")
    estimated = 3 * 1_000 * record.trace.estimated_input_tokens + 15 * 1_000 * 2
    assert record.attempts[0].operator_cost_nano_usd == estimated
    assert record.cost_nano_usd == 0


async def test_c33_a_whole_answer_that_breaks_has_a_status() -> None:
    home = await house(near=Scripted(says("Hel")))
    reply = await home.serve(stream=False)
    assert (reply.status, reply.error["code"]) == (502, "provider_unavailable")
    assert home.record.outcome == "error"


async def test_c34_before_the_commit_point_the_deadline_is_an_error_that_costs_nothing() -> None:
    home = await house(near=Scripted([FOREVER]), far=Scripted([FOREVER]))
    reply = await home.serve("acme/small", time_s=5)
    record = home.record
    assert (reply.status, reply.error["code"]) == (504, "provider_timeout")
    assert (record.outcome, record.cost_nano_usd) == ("error", 0)
    [attempt] = record.attempts
    assert (attempt.error, attempt.duration_ms) == ("provider_timeout", 5_000)


async def test_c34_after_the_commit_point_the_deadline_cuts_and_bills_what_was_delivered() -> None:
    home = await house(near=Scripted([*says("12345678"), FOREVER]))
    reply = await home.serve(time_s=5)
    record = home.record
    assert reply.status == 200
    assert reply.error["code"] == "provider_timeout"
    assert (record.outcome, record.error) == ("cancelled", "provider_timeout")
    assert (record.usage_source, record.usage.output_tokens) == ("estimated", 2)
    assert record.cost_nano_usd == home.spent_nano_usd > 0
    assert record.attempts[0].operator_cost_nano_usd == 0


@pytest.mark.parametrize("said", [[], says("Hel")])
async def test_c34_a_whole_answer_past_its_deadline_is_504_and_names_streaming(
    said: list[Frame],
) -> None:
    home = await house(near=Scripted([*said, FOREVER]))
    reply = await home.serve("acme/small", stream=False, time_s=5)
    record = home.record
    assert (reply.status, reply.error["code"]) == (504, "provider_timeout")
    assert "`stream: true`" in reply.error["message"]
    assert (record.outcome, record.cost_nano_usd) == ("error", 0)


async def test_c34_the_deadline_of_the_last_attempt_is_told_as_the_deadline() -> None:
    timeouts = {"first_token_s": 900.0, "idle_s": 900.0}
    home = await house(near=Scripted([FOREVER]), defaults={"timeouts": timeouts})
    reply = await home.serve("acme/small", stream=False, time_s=285)
    assert "`stream: true`" in reply.error["message"]


class Broken:
    """A decoder with a defect: it breaks the grammar, or just breaks."""

    def __init__(self, defect: Exception | None) -> None:
        self._defect = defect

    def feed(self, frame: Frame) -> list[StreamEvent]:
        if self._defect is not None:
            raise self._defect
        return [Started(), Started()]

    def end(self) -> list[StreamEvent]:
        return []


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("defect", [None, KeyError("the details"), TimeoutError("the details")])
async def test_c41_a_defect_is_500_without_details_and_settles(
    defect: Exception | None, stream: bool
) -> None:
    home = await house(codec=replace(codec_of("openai_chat"), decoder=lambda _: Broken(defect)))
    reply = await home.serve("acme/small", stream=stream)
    record = home.record
    if isinstance(defect, TimeoutError):
        # While an attempt is opened a timeout is the provider's, whoever raises it.
        assert reply.status == 504
        return
    assert (reply.status, reply.error["code"]) == (500, "internal_error")
    assert b"details" not in reply.body
    assert (record.outcome, record.error, record.cost_nano_usd) == ("error", "internal_error", 0)
    [(told, request_id)] = home.journal.defects
    assert isinstance(told, GrammarError) if defect is None else told is defect
    assert request_id == record.id
    assert record.attempts[0].error == "internal_error"


async def test_a_timeout_that_is_not_the_deadline_is_a_defect() -> None:
    home = await house()
    reply = home.reply(lost_at=0, broken=TimeoutError("a socket of ours"))
    with pytest.raises(TimeoutError):
        await home.serve(reply=reply)
    record = home.record
    assert (record.outcome, record.error) == ("error", "internal_error")
    assert len(home.journal.defects) == 1


@pytest.mark.parametrize("failure", [store_is_away(), KeyError("a defect"), TimeoutError()])
@pytest.mark.parametrize("stream", [True, False])
async def test_c62_what_cannot_be_settled_is_logged_whole_and_told(
    stream: bool, failure: Exception
) -> None:
    home = await house()
    home.ledger.settle_failure = failure
    reply = await home.serve(stream=stream)
    assert reply.status == (200 if stream else 503)
    assert reply.error["code"] == "service_unavailable"
    assert reply.ended
    [(record, why)] = home.journal.lost
    assert "outcome is unknown" in reply.error["message"]
    assert f"id={record.id} " in reply.error["message"]
    if not stream:
        assert reply.headers["x-should-retry"] == "false"
        assert "retry-after" not in reply.headers
    assert (record.outcome, record.cost_nano_usd, len(record.lines)) == ("ok", COST_NANO_USD, 2)
    assert why is failure
    assert home.journal.records == []
    assert bool(home.journal.defects) is isinstance(failure, KeyError)


async def test_c62_a_store_that_hangs_at_settling_is_given_up_within_its_budget() -> None:
    home = await house()
    home.ledger.settle_takes_s = 1e6
    reply = await home.serve()
    assert reply.error["code"] == "service_unavailable"
    assert reply.pieces[-1][0] == 8.0
    assert len(home.journal.lost) == 1


async def test_the_error_of_the_generation_is_told_before_that_of_settling() -> None:
    home = await house(near=Scripted(refuses(401)), far=Scripted(refuses(401)))
    home.ledger.settle_failure = store_is_away()
    reply = await home.serve()
    assert reply.error["code"] == "provider_auth"
    assert len(home.journal.lost) == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_c66_a_record_that_somebody_else_decided_is_the_one_that_is_told(
    stream: bool,
) -> None:
    home = await house()
    call, reply = home.call("acme/large", stream=stream), home.reply()
    hold = Hold(
        id=call.request_id,
        workspace_id=home.principal.workspace_id,
        key_id=home.principal.key_id,
        shard=0,
        wallet_nano_usd=0,
        key_nano_usd=0,
    )
    lost = record_of(hold, 0, "lost")
    home.stores.books.records[(hold.workspace_id, hold.id)] = lost
    await generate(home.gateway, call, home.sink(call, reply))
    assert b'"cost":0' in reply.body
    assert home.journal.records == [lost]
    assert home.spent_nano_usd == 0


@pytest.mark.parametrize(
    ("funds", "key", "code", "error"),
    [
        (0, {}, "insufficient_credits", LedgerError),
        (10**9, {"limits_nano_usd": {"total": 1}}, "key_limit_exceeded", LedgerError),
        (10**9, {"concurrency": 1}, "rate_limit_exceeded", AccessError),
    ],
)
async def test_c61_what_is_refused_before_the_hold_propagates_and_holds_nothing(
    funds: int, key: dict[str, object], code: str, error: type[GatewayError]
) -> None:
    new = NewKey(workspace_id="acme", label="test", **key)  # type: ignore[arg-type]
    home = await house(funds_nano_usd=max(funds, 1), key=new)
    home.stores.books.wallets["acme"].available = funds
    for used_up in home.stores.books.keys.values():
        if new.concurrency is not None:
            used_up.holds[home.gateway.ids.new_id()] = 0
        if new.limits_nano_usd:
            used_up.buckets["b_total"] = 0
    reply = home.reply()
    with pytest.raises(error) as refused:
        await home.serve(reply=reply)
    assert refused.value.code == code
    assert (home.held_nano_usd, home.ledger.settled, reply.status) == (0, [], None)
    assert home.near.requests == []


async def test_c61_a_locked_workspace_is_refused() -> None:
    home = await house()
    home.stores.books.lock("acme")
    with pytest.raises(AccessError) as refused:
        await home.serve()
    assert refused.value.code == "workspace_locked"
    assert home.held_nano_usd == 0
