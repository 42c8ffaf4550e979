"""A caller who requires every parameter is served by whoever takes them all, or told which is not.

Keeps C13, C18, C19.
"""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.gateways import House, RecordedReply, house
from tests.scripted import Scripted, answers, refuses
from tollgate.core.errors import ErrorCode, RequestError, UpstreamError
from tollgate.core.request import GenerationRequest, RoutingPreferences
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import Codec, Target, WireRequest
from tollgate.providers.ports.formats import codec_of

GUIDED = RequestError(ErrorCode.INVALID_REQUEST, "It knows no grammar.", param="guided_grammar")
BROKEN = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It applies no guardrail.")


def adapting(left_out: Mapping[str, tuple[str, ...] | Exception]) -> Codec:
    """Make a codec that leaves out what no row says a provider refuses, or cannot encode."""
    chat = codec_of("openai_chat")

    def encode(request: GenerationRequest, target: Target) -> WireRequest:
        dropped = left_out.get(target.provider, ())
        if isinstance(dropped, Exception):
            raise dropped
        return replace(chat.encode(request, target), adapted=dropped)

    return replace(chat, encode=encode)


async def served(home: House, *, required: bool = True) -> RecordedReply:
    call = home.call("acme/large")
    wishes = RoutingPreferences(require_parameters=required)
    strict = replace(call.parsed, request=replace(call.parsed.request, preferences=wishes))
    reply = home.reply()
    await generate(home.gateway, replace(call, parsed=strict), home.sink(call, reply))
    return reply


@pytest.mark.parametrize("near", [("seed",), GUIDED])
async def test_c13_the_next_endpoint_that_takes_every_parameter_serves(
    near: tuple[str, ...] | Exception,
) -> None:
    home = await house(codec=adapting({"near": near}))
    assert (await served(home)).status == 200
    assert (home.record.provider, home.near.requests) == ("far", [])
    assert [attempt.provider for attempt in home.record.attempts] == ["far"]


async def test_c13_without_the_requirement_the_first_endpoint_says_what_it_left_out() -> None:
    home = await house(codec=adapting({"near": ("seed",)}))
    reply = await served(home, required=False)
    assert home.record.provider == "near"
    assert reply.headers["x-tollgate-adapted"] == "seed"


@pytest.mark.parametrize(
    ("near", "far", "param", "said"),
    [
        (("seed", "stop"), ("stop",), "seed", "near does not support seed, stop"),
        (GUIDED, ("seed",), "guided_grammar", "It knows no grammar."),
    ],
)
async def test_c13_if_nobody_takes_every_parameter_it_is_named_and_nobody_is_asked(
    near: tuple[str, ...] | Exception, far: tuple[str, ...], param: str, said: str
) -> None:
    home = await house(codec=adapting({"near": near, "far": far}))
    reply = await served(home)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert said in reply.error["message"]
    assert (home.near.requests, home.far.requests, home.spent_nano_usd) == ([], [], 0)


async def test_c13_an_endpoint_that_is_left_alone_is_retried_as_the_last_one_is() -> None:
    busy = Scripted(refuses(429), answers("Hello"))
    home = await house(near=busy, codec=adapting({"far": ("seed",)}))
    assert (await served(home)).status == 200
    assert len(home.near.requests) == 2


async def test_c13_what_breaks_while_encoding_is_a_failure_of_its_endpoint_not_of_a_parameter() -> (
    None
):
    home = await house(codec=adapting({"near": BROKEN}))
    assert (await served(home)).status == 200
    assert home.record.provider == "far"
