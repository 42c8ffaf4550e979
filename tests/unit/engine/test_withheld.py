"""What of a provider's words a record may keep: nothing that the caller wrote.

Keeps C44, C69.
"""

import json
import unicodedata
from typing import Any
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.gateways import house, request_body
from tests.scripted import Scripted, says
from tollgate.core.content import Text
from tollgate.core.request import GenerationRequest, SystemMessage, Tool, UserMessage
from tollgate.engine.generate import generate
from tollgate.engine.meter import ALL_WORDS_LENGTH_MAX, PROVIDER_WORDS_LENGTH_MAX
from tollgate.engine.withheld import withhold_prompt
from tollgate.providers.ports.base import Frame, UpstreamRefused

PROMPT = "My patient Erika Mustermann, born 1964, takes Warfarin. Résumé: 你好世界 again."


def asked(prompt: str = PROMPT, **fields: Any) -> GenerationRequest:
    return GenerationRequest(
        model="acme/large", messages=(UserMessage(content=(Text(text=prompt),)),), **fields
    )


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("Bad: my patient erika mustermann, born", "Bad: [prompt]"),
        ("Bad input 'Mustermann' here", "Bad input '[prompt]' here"),
        ("Born 1964 is not allowed", "Born [prompt] is not allowed"),
        ("Not allowed: 你好世", "Not allowed: [prompt]"),
        ("Not allowed: \\u4f60\\u597d\\u4e16\\u754c", "Not allowed: [prompt]"),
        ('{"input": "takes Warfarin. R\\u00e9sum\\u00e9:"}', '{"input": "[prompt]:"}'),
        ("You exceeded your current quota.", "You exceeded your current quota."),
        ("Unsupported parameter: 'temperature'.", "Unsupported parameter: 'temperature'."),
    ],
)
def test_c44_what_a_provider_repeats_of_a_prompt_is_withheld(words: str, kept: str) -> None:
    assert withhold_prompt(words, asked()) == kept


@pytest.mark.parametrize("place", [0, 65_500, 65_520, 65_536, 131_060, 199_980])
def test_c44_a_long_prompt_is_compared_in_pieces_that_overlap(place: int) -> None:
    filling = "x " * 100_000
    prompt = f"{filling[:place]}; Erika takes Warfarin; {filling[place:]}"
    assert withhold_prompt("Bad: erika takes warfarin!", asked(prompt)) == "Bad: [prompt]!"


SPELT = "My café patient Erika takes Warfarin daily"


@pytest.mark.parametrize(
    "quoted",
    [
        quote(SPELT),
        quote(quote(SPELT)),
        quote_plus(SPELT),
        "My&#32;caf&eacute;&nbsp;patient Erika takes Warfarin daily",
        json.dumps(json.dumps(SPELT)),
        unicodedata.normalize("NFD", SPELT),
        "".join(chr(ord(it) + 0xFEE0) if "!" <= it <= "~" else it for it in SPELT),
        SPELT.replace(" ", "_"),
        SPELT.replace("é", "\\xe9"),
        SPELT.replace("é", "\\U000000e9"),
        SPELT.replace("p", "p\u200b"),
    ],
)
def test_c44_a_prompt_is_withheld_in_every_spelling(quoted: str) -> None:
    shown = withhold_prompt(f"Bad input: {quoted}", asked(SPELT))
    assert shown.replace('"', "") == "Bad input: [prompt]"


@pytest.mark.parametrize(
    "hostile",
    [b"\\\\ud800", b"\\\\u001b[2J", b"%1B[2J", b"\\\\u202e", b"&#27;[2J", b"\\\\\\\\udfff"],
)
async def test_c66_words_of_a_hostile_provider_can_be_stored_and_printed(hostile: bytes) -> None:
    body = b'{"error": {"message": "Out of %b memory"}}' % hostile
    home = await house(near=Scripted(refuses_with(500, body)))
    await home.serve("acme/small")
    words = home.record.attempts[0].provider_words
    assert words.startswith("Out of ")
    assert words.isprintable()
    assert json.loads(msgspec.json.encode(words)) == words


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": (Tool(name="t", description="Reads the secret ledger of Acme."),)},
        {"tools": (Tool(name="t", parameters={"a": {"b": ["the secret ledger of Acme"]}}),)},
        {"metadata": {"note": "the secret ledger of Acme"}},
        {"guided": {"guided_regex": "the secret ledger of Acme"}},
        {"messages": (SystemMessage(content=(Text(text="Keep the secret ledger of Acme!"),)),)},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_c44_every_field_of_a_request_is_withheld(fields: Any) -> None:
    request = GenerationRequest(**{"model": "m", "messages": (), **fields})
    told = withhold_prompt("Cannot read: the secret ledger of Acme", request)
    assert told == "Cannot read: [prompt]"


def test_c44_a_character_of_two_halves_is_withheld() -> None:
    prompt = "Smile 😀 now please"
    assert withhold_prompt(f"Bad: {json.dumps(prompt)[1:-1]}", asked(prompt)) == "Bad: [prompt]"


def test_c66_a_single_word_of_a_schema_is_no_prompt() -> None:
    tools = (Tool(name="t", parameters={"type": "object"}),)
    words = "Expected an object here."
    assert withhold_prompt(words, asked(tools=tools)) == words


@pytest.mark.parametrize("prompt", ["hunter", "hunter two", "Hunter2"])
def test_c44_a_prompt_of_a_word_is_withheld(prompt: str) -> None:
    assert "unter" not in withhold_prompt(f"Rejected: {prompt}.", asked(prompt))


@given(st.text(min_size=1, max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_c44_no_run_of_three_words_is_left(prompt: str, before: str, after: str) -> None:
    told = withhold_prompt(f"{before} {prompt} {after}", asked(f"one two {prompt} three four"))
    words = [word for word in prompt.split() if word.isascii() and word.isalpha()]
    if len(words) >= 3 and len(words) == len(prompt.split()):
        assert " ".join(words) not in told


def refuses_with(status: int, body: bytes) -> list[Any]:
    return [UpstreamRefused(status, {}, body)]


async def test_c66_the_words_of_each_failed_attempt_are_kept() -> None:
    home = await house(
        near=Scripted(
            refuses_with(401, b'{"error": {"message": "Key sk-proj-Ab12Cd34Ef56 is disabled."}}'),
            refuses_with(429, b'{"error": {"message": "Quota of the project is used up."}}'),
        ),
        far=Scripted(refuses_with(529, b"<html><title>Bad gateway</title>cloud edge 7</html>")),
    )
    await home.serve("smart")
    words = [attempt.provider_words for attempt in home.record.attempts]
    assert words[:3] == [
        "Key [redacted] is disabled.",
        "Quota of the project is used up.",
        "Bad gateway cloud edge 7",
    ]


async def test_c66_the_words_of_a_stream_that_broke_are_kept() -> None:
    broken = b'{"error": {"message": "The engine is out of memory.", "code": 500}}'
    near = Scripted([*says("Hel"), Frame(data=broken)])
    home = await house(near=near)
    await home.serve("acme/small")
    assert home.record.attempts[-1].provider_words == "The engine is out of memory."


async def test_c44_a_record_does_not_repeat_the_prompt_of_a_400() -> None:
    body = b'{"error": {"message": "Invalid content: Say hello.", "code": "bad"}}'
    home = await house(near=Scripted(refuses_with(400, body)))
    await home.serve("acme/small")
    assert home.record.attempts[0].provider_words == "bad: Invalid content: [prompt]."


async def test_c66_words_are_bounded_for_each_attempt_and_for_all() -> None:
    long = b'{"error": {"message": "%b"}}' % (b"so it is, " * 5_000)
    home = await house(
        near=Scripted(refuses_with(500, long)), far=Scripted(refuses_with(500, long))
    )
    await home.serve("smart")
    lengths = [len(attempt.provider_words) for attempt in home.record.attempts]
    assert max(lengths) == PROVIDER_WORDS_LENGTH_MAX
    assert sum(lengths) <= ALL_WORDS_LENGTH_MAX


@pytest.mark.parametrize("stream", [False, True])
async def test_c44_a_400_that_repeats_the_prompt_reaches_its_caller_without_the_prompt(
    stream: bool,
) -> None:
    said = "Invalid content: Say hello. Supported: text, image."
    body = json.dumps({"error": {"message": said}}).encode()
    home = await house(near=Scripted(refuses_with(400, body)))
    reply = await home.serve("acme/small", stream=stream)
    assert b"Say hello" not in reply.body
    assert b"refused the request: Invalid content: [prompt]. Supported: text, image" in reply.body


async def test_c44_our_own_words_are_not_taken_for_the_prompt() -> None:
    home = await house(near=Scripted(refuses_with(400, b'{"error": {"message": "Bad."}}')))
    parsed = home.ingress.parse(
        request_body(
            "acme/small", messages=[{"role": "user", "content": "near refused the request"}]
        )
    )
    reply, call = home.reply(), replace(home.call("acme/small"), parsed=parsed)
    await generate(home.gateway, call, home.sink(call, reply))
    assert b"The provider near refused the request: Bad" in reply.body
