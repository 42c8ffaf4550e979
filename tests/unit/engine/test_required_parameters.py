"""A caller who requires every parameter gets them or an error, whatever the codec can do.

Keeps C13.
"""

from dataclasses import replace

from typing_extensions import override

from tests.gateways import house
from tollgate.core.request import GenerationRequest, RoutingPreferences
from tollgate.engine.generate import generate
from tollgate.providers.base import Target, WireRequest
from tollgate.providers.openai_chat.codec import OpenAiChatCodec


class Adapting(OpenAiChatCodec):
    """A codec that leaves a parameter out which no row says it refuses."""

    @override
    def encode(self, request: GenerationRequest, target: Target) -> WireRequest:
        return replace(super().encode(request, target), adapted=("seed",))


async def test_c13_a_parameter_that_is_required_and_would_be_left_out_is_refused() -> None:
    home = await house(codec=Adapting())
    call = home.call("acme/large")
    wishes = RoutingPreferences(require_parameters=True)
    strict = replace(call.parsed, request=replace(call.parsed.request, preferences=wishes))
    reply = home.reply()
    await generate(home.gateway, replace(call, parsed=strict), home.sink(call, reply))
    assert (reply.status, reply.error["param"]) == (400, "provider.require_parameters")
    assert "seed" in reply.error["message"]
    assert (home.near.requests, home.spent_nano_usd) == ([], 0)
