"""Providers that lie about usage or ignore the output limit: what is billed at most, lie by lie.

The prices are so high that a believed lie would cost the caller's wallet of $1 many times over.

Keeps C65.
"""

import asyncio
import json
from collections import Counter
from typing import Any, Final

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.pictures import data_url, png
from tests.scripted import Scripted, calls, ends, frame, says
from tests.unit.routing.catalogs import endpoint, model
from tests.upstream.openai_chunks import chunk, usage
from tollgate.ingress.formats import CHAT_COMPLETIONS
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

HUGE: Final = 10**9
LIMIT: Final = 5
# The caller's limit with its slack: an eighth, and 64 tokens.
OUTPUT_MAX: Final = LIMIT + 64
ADDED_MAX: Final = 4_096
PICTURE: Final = data_url(png())
PICTURE_TOKENS_MAX: Final = 2 * 8_192
LONG: Final = ["x" * 1_000] * 200
# $1 of credit, and $2 and $2,000 for a million tokens of input and output.
FUNDS_NANO_USD: Final = 10**9
INPUT_NANO_USD, OUTPUT_NANO_USD = 2_000, 2_000_000
KEY_LIMIT_NANO_USD: Final = 5 * 10**8


def reports(prompt: int = 10, completion: int = 2, **details: int) -> list[Any]:
    """The end of an answer with this usage."""
    return [*ends()[:1], frame(chunk(usage=usage(prompt, completion, **details))), *ends()[2:]]


def thinks(text: str) -> Any:
    """A piece of reasoning that is shown."""
    return frame(chunk({"reasoning_content": text}))


class Lie(Struct, frozen=True, kw_only=True):
    """An answer that is not what its request allows, and what it may cost."""

    answer: list[Any]
    output_max: int = OUTPUT_MAX
    """The most output tokens that are billed."""
    media_tokens: int = 0
    """The most input tokens besides those of the body."""
    is_cut: bool = False
    """True if the answer is ended before the provider ends it."""
    fields: dict[str, Any] = {}
    facts: dict[str, Any] = {}


LIES: Final[dict[str, Lie]] = {
    "a prompt of 10^9 tokens": Lie(answer=[*says("Hello"), *reports(HUGE)]),
    "a cached prefix of 10^9": Lie(answer=[*says("Hello"), *reports(HUGE, cached=HUGE)]),
    "an answer of 10^9 tokens": Lie(answer=[*says("Hello"), *reports(10, HUGE)]),
    "10^9 of everything": Lie(answer=[*says("Hello"), *reports(HUGE, HUGE, reasoning=HUGE)]),
    "a prompt of 10^9 with a picture": Lie(
        answer=[*says("Hello"), *reports(HUGE)],
        media_tokens=PICTURE_TOKENS_MAX,
        fields={
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": PICTURE}}],
                }
            ]
        },
        facts={"input": ("text", "image")},
    ),
    "hidden reasoning beyond the limit": Lie(
        answer=[*says("Hello"), *reports(10, 40_000, reasoning=39_990)],
        facts={"supports": ("reasoning",)},
    ),
    "200 KB of text and 40,000 tokens": Lie(
        answer=[*says(*LONG), *reports(10, 40_000)], is_cut=True
    ),
    "200 KB in one frame": Lie(answer=[*says("".join(LONG)), *reports(10, 40_000)], is_cut=True),
    "200 KB of text without a report": Lie(answer=[*says(*LONG), *ends()[:1]], is_cut=True),
    "200 KB of text that reports two tokens": Lie(answer=[*says(*LONG), *reports()], is_cut=True),
    "200 KB of reasoning": Lie(
        answer=[*says(), *map(thinks, LONG), *says("Hello")[1:], *reports(10, 40_000)],
        is_cut=True,
        facts={"supports": ("reasoning",)},
    ),
    "200 KB of arguments": Lie(
        answer=[*calls("look_up", json.dumps("".join(LONG))), *reports(10, 40_000)],
        is_cut=True,
        fields={"tools": [{"type": "function", "function": {"name": "look_up"}}]},
        facts={"supports": ("tools",)},
    ),
    "two choices of 200 KB": Lie(
        answer=[*says(*LONG), *reports(10, 40_000)],
        output_max=2 * OUTPUT_MAX,
        is_cut=True,
        fields={"n": 2},
    ),
}
by_lie = pytest.mark.parametrize("lie", LIES.values(), ids=[*LIES])
by_way = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
by_admission = pytest.mark.parametrize("admission", ["covered", "positive"])


async def lied_to(lie: Lie, *, admission: str, key: NewKey | None = None) -> House:
    """A gateway of a caller with $1, whose provider lies."""
    offer = endpoint("near", "large-1", dollars_in="2", dollars_out="2000")
    home = await house(
        near=Scripted(lie.answer),
        funds_nano_usd=FUNDS_NANO_USD,
        key=key,
        models={"acme/large": model(offer, **lie.facts)},
        aliases={},
        routes={},
    )
    home.gateway = replace(home.gateway, admission=admission)
    return home


async def post(home: House, lie: Lie, *, stream: bool) -> tuple[Exchange, bytes]:
    """The reply to one request, and the request's body."""
    asked = {"messages": [{"role": "user", "content": "Hello"}], **lie.fields}
    body = {"model": "acme/large", "max_tokens": LIMIT, "stream": stream, **asked}
    sent = json.dumps(body).encode()
    reply = await request(
        chat_app(home.front, Always(home.gateway), WebLimits()),
        "POST",
        f"/api{CHAT_COMPLETIONS.path}",
        headers={"authorization": f"Bearer {home.secret}"},
        body=sent,
    )
    return reply, sent


async def ask(
    lie: Lie, *, stream: bool, admission: str = "covered", key: NewKey | None = None
) -> tuple[House, Exchange, bytes]:
    """The gateway after one request, its reply, and the request's body."""
    home = await lied_to(lie, admission=admission, key=key)
    return home, *await post(home, lie, stream=stream)


@by_way
@by_admission
@by_lie
async def test_c65_no_lie_is_billed_above_its_bound(lie: Lie, admission: str, stream: bool) -> None:
    home, reply, sent = await ask(lie, stream=stream, admission=admission)

    record = home.record
    assert (reply.status, record.outcome) == (200, "ok")
    choices = lie.fields.get("n", 1)
    input_max = (2 * ((len(sent) + 1) // 2) + ADDED_MAX + lie.media_tokens) * choices
    assert record.usage.input_tokens <= input_max
    assert (record.usage.output_tokens or 0) <= lie.output_max
    most = input_max * INPUT_NANO_USD + lie.output_max * OUTPUT_NANO_USD
    assert home.spent_nano_usd == record.cost_nano_usd <= most < FUNDS_NANO_USD
    # One token for each byte instead of one for two, and what a provider adds, are beyond the hold.
    assert record.cost_nano_usd <= record.held_nano_usd + input_max * INPUT_NANO_USD
    assert home.stores.books.wallets["acme"].available >= 0


@by_way
@by_admission
@pytest.mark.parametrize(
    "lie", [lie for lie in LIES.values() if lie.is_cut], ids=[n for n in LIES if LIES[n].is_cut]
)
async def test_c65_an_answer_beyond_its_callers_limit_is_cut_and_says_so(
    lie: Lie, admission: str, stream: bool
) -> None:
    home, reply, _ = await ask(lie, stream=stream, admission=admission)

    record = home.record
    assert "max_tokens" in record.adapted
    if "".join(LONG).encode() not in reply.body and b"look_up" not in reply.body:
        # The provider was left before its end, unless the whole excess came in one event.
        assert record.finish == "length"
        assert len(reply.body) < 30_000 * lie.fields.get("n", 1)
    if stream:
        last = json.loads(reply.body.split(b"\n\n")[-3].removeprefix(b"data: "))
        assert "max_tokens" in last["adapted"]
    else:
        assert reply.headers["x-tollgate-adapted"] == "max_tokens"


@by_way
async def test_c62_c65_a_limit_of_the_key_holds_where_max_tokens_is_ignored(stream: bool) -> None:
    """The limit of $0.50 was passed 160 times."""
    lie = LIES["200 KB of text and 40,000 tokens"]
    limits = {"total": KEY_LIMIT_NANO_USD}
    key = NewKey(workspace_id="acme", label="x", limits_nano_usd=limits)
    home, _, _ = await ask(lie, stream=stream, key=key)
    assert 0 < home.record.cost_nano_usd <= home.record.held_nano_usd <= KEY_LIMIT_NANO_USD


async def test_c62_c65_callers_at_once_stay_within_the_wallet_whatever_the_provider_does() -> None:
    """Each of 32 answers holds $0.14 of a wallet of $1."""
    lie = LIES["200 KB of text and 40,000 tokens"]
    home = await lied_to(lie, admission="covered")

    replies = await asyncio.gather(*(post(home, lie, stream=True) for _ in range(32)))

    assert Counter(reply.status for reply, _ in replies) == {200: 7, 402: 25}
    wallet = home.stores.books.wallets["acme"]
    assert wallet.available >= 0
    assert (wallet.holds, wallet.available + wallet.spent) == ({}, FUNDS_NANO_USD)


@by_way
async def test_c12_an_honest_answer_of_long_tokens_is_not_cut(stream: bool) -> None:
    """Sixty-four tokens beyond the limit at 16 bytes each are more than any server sends."""
    honest = Lie(answer=[*says(*["indentation     "] * LIMIT), *reports(10, LIMIT)])
    home, reply, _ = await ask(honest, stream=stream)
    record = home.record
    assert (record.finish, record.usage_source, record.adapted) == ("stop", "provider", ())
    assert reply.body.count(b"indentation") == LIMIT
