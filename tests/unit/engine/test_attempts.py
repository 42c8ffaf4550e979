"""Which attempt serves: the chain, its order, its commit point and its limits.

Keeps C16, C34, C44, C50, C52.
"""

import asyncio
import json

import pytest
from msgspec.structs import replace

from tests.gateways import House, house
from tests.scripted import (
    FOREVER,
    Answer,
    Scripted,
    Silence,
    answers,
    calls,
    counts,
    ends,
    frame,
    refuses,
    says,
)
from tests.unit.routing.catalogs import endpoint, model
from tests.upstream.openai_chunks import chunk
from tollgate.core.content import Part, Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, MissingCredentials, UpstreamError
from tollgate.core.events import PartStart, Started, StreamEvent
from tollgate.core.request import GenerationRequest
from tollgate.core.secret import CredentialPlace
from tollgate.providers.ports.base import Frame, Target, WireRequest
from tollgate.providers.ports.formats import codec_of
from tollgate.providers.shared.emulation import OUTPUT_TOOL, Wrapping

CHAT = codec_of("openai_chat")
BROKEN = UpstreamError(ErrorCode.PROVIDER_OVERLOADED, "It is overloaded.", status=529)


def tried(home: House) -> list[tuple[str, str, str | None, int | None]]:
    return [
        (attempt.provider, attempt.model, attempt.error, attempt.status)
        for attempt in home.record.attempts
    ]


async def test_c50_attempts_are_made_in_the_order_of_the_plan_and_recorded() -> None:
    home = await house(
        near=Scripted(refuses(429), [Silence(2), *refuses(401)]), far=Scripted(answers("Hi"))
    )
    await home.serve("smart")
    assert tried(home) == [
        ("near", "acme/small", "provider_rate_limit", 429),
        ("near", "acme/large", "provider_auth", 401),
        ("far", "acme/large", None, None),
    ]
    assert [attempt.duration_ms for attempt in home.record.attempts] == [0, 2000, 0]


async def test_c50_a_passing_failure_is_retried_on_its_endpoint_first() -> None:
    home = await house(near=Scripted(refuses(500), refuses(500), answers("Hello")))
    await home.serve()
    assert [error for _, _, error, _ in tried(home)] == [
        "provider_unavailable",
        "provider_unavailable",
        None,
    ]
    assert home.far.requests == []


async def test_c50_three_failures_of_one_endpoint_are_enough() -> None:
    home = await house(near=Scripted(refuses(500)))
    await home.serve()
    assert (len(home.near.requests), len(home.far.requests)) == (3, 1)


async def test_c50_each_endpoint_has_its_own_retries() -> None:
    home = await house(
        near=Scripted(refuses(500)), far=Scripted(refuses(500), refuses(500), answers("Hi"))
    )
    await home.serve()
    assert (home.record.outcome, len(home.record.attempts)) == ("ok", 6)


async def test_c50_retry_after_is_waited_for() -> None:
    home = await house(near=Scripted(refuses(429, retry_after="3"), answers("Hello")))
    reply = await home.serve("acme/small")
    assert reply.pieces[0][0] == 3
    assert home.record.outcome == "ok"


async def test_c50_the_callers_own_mistake_is_never_retried() -> None:
    home = await house(near=Scripted(refuses(400)))
    assert (await home.serve()).status == 400
    assert (len(home.near.requests), len(home.far.requests)) == (1, 0)


async def test_c50_next_on_decides_what_moves_on() -> None:
    routes = {
        "smart": {
            "description": "Only when it is slow",
            "try": ("acme/small", "other/tools"),
            "next_on": ("provider_timeout",),
        }
    }
    home = await house(near=Scripted(refuses(401)), routes=routes)
    assert (await home.serve("smart")).status == 502
    home = await house(near=Scripted([FOREVER]), routes=routes)
    await home.serve("smart")
    assert home.record.model == "other/tools"


async def test_c44_an_absent_key_moves_on_where_a_refused_one_ends_the_chain() -> None:
    routes = {
        "smart": {
            "description": "Moves on when it is slow",
            "try": ("acme/small", "other/tools"),
            "next_on": ("provider_timeout",),
        }
    }
    absent = MissingCredentials("The provider near has no key.")
    home = await house(near=Scripted([absent]), far=Scripted(answers("Hi")), routes=routes)
    assert (await home.serve("smart")).status == 200
    assert tried(home) == [
        ("near", "acme/small", "provider_auth", None),
        ("far", "other/tools", None, None),
    ]
    home = await house(near=Scripted([absent]), far=Scripted(refuses(401)), routes=routes)
    assert (await home.serve("smart")).status == 502
    assert (home.record.error, home.record.cost_nano_usd) == ("provider_auth", 0)


async def test_c44_a_chain_without_any_key_names_every_variable_that_would_do() -> None:
    near = CredentialPlace(variables=("NEAR_API_KEY",))
    far = CredentialPlace(variables=("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    home = await house(
        near=Scripted([MissingCredentials("near: no key.", (near,))]),
        far=Scripted([MissingCredentials("far: no key.", (far,))]),
    )
    reply = await home.serve("smart")
    assert reply.status == 502
    assert reply.json["error"]["message"] == (
        "None of the 4 endpoints of smart has a usable key here: "
        "set one of NEAR_API_KEY, AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY."
    )
    home = await house(
        near=Scripted(refuses(429)), far=Scripted([MissingCredentials("far: no key.", (far,))])
    )
    message = (await home.serve("smart")).json["error"]["message"]
    assert message.startswith("2 of the 4 endpoints of smart have no usable key here: set ")


async def test_c44_a_chain_on_lambda_says_how_a_secret_is_made() -> None:
    near, far = (
        CredentialPlace(secret=f"tollgate/{name}", region="eu-west-1") for name in ("near", "far")
    )
    home = await house(
        near=Scripted([MissingCredentials("near: no key.", (near,))]),
        far=Scripted([MissingCredentials("far: no key.", (far,))]),
    )
    assert (await home.serve("smart")).json["error"]["message"] == (
        "None of the 4 endpoints of smart has a usable key here: make one of the secrets "
        "tollgate/near, tollgate/far: `aws secretsmanager create-secret --region eu-west-1 "
        "--name tollgate/near --secret-string file:///dev/stdin`."
    )


async def test_c52_without_fallbacks_the_first_model_is_kept_with_its_endpoints() -> None:
    home = await house(near=Scripted(refuses(401)))
    assert (await home.serve("smart", fallbacks=False)).status == 502
    assert [name for _, name, _, _ in tried(home)] == ["acme/small"]
    home = await house(near=Scripted(refuses(401)))
    assert (await home.serve("acme/large", fallbacks=False)).status == 200


async def test_c34_a_timeout_is_not_retried_on_the_same_endpoint() -> None:
    home = await house(near=Scripted([FOREVER]))
    await home.serve()
    assert tried(home) == [
        ("near", "acme/large", "provider_timeout", None),
        ("far", "acme/large", None, None),
    ]
    assert home.record.attempts[0].duration_ms == 120_000


async def test_c34_each_attempt_has_its_share_of_the_time_that_is_left() -> None:
    home = await house(near=Scripted([FOREVER]), far=Scripted([FOREVER]))
    await home.serve(time_s=100)
    assert [attempt.duration_ms for attempt in home.record.attempts] == [50_000, 50_000]


@pytest.mark.parametrize("content", [[], says("Hel")])
async def test_c34_a_stream_that_falls_silent_times_out(content: Answer) -> None:
    home = await house(
        near=Scripted([*content, FOREVER]),
        models={"acme/small": model(endpoint("near", "small-1"))},
        aliases={},
        routes={},
        defaults={"timeouts": {"idle_s": 7.0}},
    )
    reply = await home.serve("acme/small")
    assert reply.error["code"] == "provider_timeout"
    assert home.record.duration_ms == 7_000
    assert home.record.outcome == "error"


@pytest.mark.parametrize(
    ("beginning", "served_by"),
    [
        # A role, a usage report and an opened text part are no content yet.
        ([frame(chunk({"role": "assistant", "content": ""}))], "far"),
        ([counts()], "far"),
        (says("Hel"), "near"),
        ([calls("look_up")[0]], "near"),
    ],
)
async def test_d6_an_attempt_commits_at_its_first_content(
    beginning: Answer, served_by: str
) -> None:
    home = await house(near=Scripted([*beginning, BROKEN]))
    await home.serve()
    assert home.record.provider == served_by
    assert (home.record.outcome == "ok") is (served_by == "far")


class Events:
    """A decoder whose first frame is these events, and whose next is more than it can take."""

    def __init__(self, *events: StreamEvent) -> None:
        self._events = [list(events)]

    def feed(self, frame: Frame) -> list[StreamEvent]:
        if not self._events:
            raise UpstreamError(ErrorCode.PROVIDER_OVERLOADED, "It is overloaded.")
        return self._events.pop()

    def end(self) -> list[StreamEvent]:
        return []


@pytest.mark.parametrize(
    ("part", "commits"),
    [
        (Text(text=""), False),
        (Reasoning(text=""), False),
        (Refusal(text=""), False),
        (ToolCall(id="call-1", name="look_up", arguments=""), True),
    ],
)
async def test_d6_an_opened_part_commits_only_if_it_says_something(
    part: Part, commits: bool
) -> None:
    decoder = Events(Started(), PartStart(index=0, part=part))
    home = await house(codec=replace(CHAT, decoder=lambda _: decoder))
    await home.serve()
    assert home.record.outcome == "error"
    assert [attempt.provider for attempt in home.record.attempts] == (
        ["near"] if commits else ["near", "far", "far", "far"]
    )


async def test_d6_an_empty_answer_commits_at_its_end() -> None:
    home = await house(near=Scripted(ends("length")))
    await home.serve()
    assert (home.record.outcome, home.record.finish) == ("ok", "length")
    assert home.far.requests == []


async def test_d6_an_empty_answer_that_is_cut_off_is_none() -> None:
    home = await house(near=Scripted([frame(chunk({"role": "assistant", "content": ""}))]))
    await home.serve()
    assert home.record.provider == "far"


async def test_c52_a_failed_attempt_costs_the_operator_what_it_reported_and_no_fee() -> None:
    rates = {**endpoint("near", "L"), "price": {**endpoint("near", "L")["price"]}}
    rates["price"]["request"] = "0.01"
    home = await house(
        near=Scripted([counts(10, 0), BROKEN], refuses(529)),
        models={"acme/large": model(rates, rates, endpoint("far", "L"))},
        aliases={},
        routes={},
    )
    await home.serve()
    first, second, third = home.record.attempts
    assert first.operator_cost_nano_usd == 10_000 + 10_000_000
    assert second.operator_cost_nano_usd == third.operator_cost_nano_usd == 0


async def test_a_connection_is_closed_before_the_next_is_opened() -> None:
    home = await house(near=Scripted(refuses(429)), far=Scripted([Silence(5), *answers("Hi")]))
    reply = home.reply()
    task = home.begin(reply=reply)
    await asyncio.sleep(1)
    assert (home.near.open_count, home.far.open_count) == (0, 1)
    await task
    assert home.far.open_count == 0


async def test_a_connection_stays_open_while_its_answer_is_read() -> None:
    home = await house(near=Scripted([*says("Hel"), Silence(5), *ends()]))
    task = home.begin(reply=home.reply())
    await asyncio.sleep(1)
    assert home.near.open_count == 1
    await task
    assert home.record.outcome == "ok"


def encode_emulating(request: GenerationRequest, target: Target) -> WireRequest:
    """Encode for a provider that has no structured output."""
    return replace(CHAT.encode(request, target), wrapping=Wrapping(tool=True))


async def test_c16_an_emulated_answer_is_told_as_content() -> None:
    answer = [*says("Sure:"), *calls(OUTPUT_TOOL, '{"city":"Paris"}'), *ends("tool_calls")]
    home = await house(near=Scripted(answer), codec=replace(CHAT, encode=encode_emulating))
    reply = await home.serve(stream=False)
    (choice,) = json.loads(reply.body)["choices"]
    assert choice["message"]["content"] == '{"city":"Paris"}'
    assert not choice["message"].get("tool_calls")
    assert choice["finish_reason"] == "stop"
