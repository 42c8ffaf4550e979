"""C81: answers to typed questions, from the request to the bill.

Keeps C41, C44, C65, C66, C71, C81.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, ShelvedMedia, house
from tests.pictures import png
from tests.scripted import Scripted, frame, refuses
from tests.unit.ingress.media_samples import PDF, data_url
from tests.unit.routing.catalogs import model, price, provider
from tollgate.core.json_value import JsonValue
from tollgate.core.work.decision import DecisionRequest
from tollgate.core.work.pictures import READ_TOKENS_MAX
from tollgate.engine.withheld import withhold_prompt
from tollgate.ingress.formats import DECISIONS
from tollgate.providers.ports.base import FetchedMedia, Frame
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

PICTURE = "https://example.com/a.png"
PNG = data_url(png(), "image/png")
QUESTIONS: list[dict[str, Any]] = [
    {"type": "predicate", "name": "urgent", "instructions": "The writer is in a hurry."},
    {
        "type": "choice",
        "instructions": "Which team answers?",
        "choices": [{"value": "billing", "description": "Money"}, {"value": True}],
    },
    {
        "type": "score",
        "name": "anger",
        "instructions": "How angry is the writer?",
        "levels": [{"label": "calm"}, {"label": "angry"}],
    },
]
PREDICATE = {"type": "predicate", "name": "urgent", "probability": 0.97}
CHOICE = {
    "type": "choice",
    "name": None,
    "choice": True,
    "confidence": 0.8,
    "probabilities": [
        {"value": "billing", "probability": 0.1},
        {"value": True, "probability": 0.9},
    ],
}
SCORE = {
    "type": "score",
    "name": "anger",
    "score": 0.75,
    "confidence": 0.5,
    "probabilities": [
        {"value": 0, "label": "calm", "probability": 0.25},
        {"value": 1, "label": "angry", "probability": 0.75},
    ],
}
REFUSED = {"type": "refusal", "name": "urgent"}
ANSWERS = [PREDICATE, CHOICE, SCORE]


def usage(tokens: int, *, read: int = 0, written: int = 0) -> dict[str, Any]:
    return {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens,
    }


def answered(*answers: Any, tokens: int = 100, **counts: int) -> list[Frame]:
    body = {"answers": answers, "model": "gpt-6-luna", "usage": usage(tokens, **counts)}
    return [frame(body)]


def picture(url: str, **fields: Any) -> dict[str, Any]:
    return {"type": "input_image", "image_url": url, **fields}


def said(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [*parts]}]


async def home_of(
    *near: Any, far: Any = None, of_model: Mapping[str, Any] = MappingProxyType({}), **sections: Any
) -> House:
    rates = {name: rate for name, rate in price("0.10").items() if name != "output"}
    rates |= {name: price(rate)["input"] for name, rate in (("cache_read", "0.01"),)}
    offers = [{"provider": slug, "upstream": "d-1", "price": rates} for slug in ("near", "far")]
    section = model(*offers, kind="decision", context=100_000, input=("text", "image"))
    section |= of_model
    del section["max_output"]
    return await house(
        near=Scripted(*near),
        far=Scripted(far) if far else None,
        **{"providers": {"near": provider(), "far": provider()}, **sections},
        models={"acme/judge": section},
        aliases={},
        routes={},
    )


async def decide(home: House, **fields: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = {"model": "acme/judge", "input": "Hurry up!", "questions": QUESTIONS, **fields}
    return await request(
        app,
        "POST",
        DECISIONS.path,
        headers={"authorization": f"Bearer {home.secret}"},
        body=json.dumps(body).encode(),
    )


async def test_c66_c81_answers_are_passed_on_and_billed_by_the_input() -> None:
    home = await home_of(answered(*ANSWERS, tokens=100, read=40, written=20))
    reply = await decide(home)
    assert reply.json == {
        "model": "acme/judge",
        "answers": ANSWERS,
        "usage": usage(100, read=40, written=20),
    }
    record = home.record
    assert (record.trace.kind, record.usage_source) == ("decision", "provider")
    # Written tokens have no rate of their own here, so they cost as much as the rest.
    assert record.cost_nano_usd == 60 * 100 + 40 * 10
    [sent] = home.near.requests
    assert (sent.path, sent.body) == (
        "/decisions",
        {"model": "d-1", "input": "Hurry up!", "questions": QUESTIONS},
    )


async def test_c65_c81_a_report_of_more_tokens_than_were_held_for_is_cut() -> None:
    home = await home_of(answered(*ANSWERS, tokens=50_000))
    await decide(home)
    record = home.record
    assert record.usage_source == "bounded"
    assert record.usage.input_tokens == record.trace.input_tokens_max < 2_000


async def test_c65_c81_an_answer_without_a_report_is_estimated() -> None:
    home = await home_of([frame({"answers": ANSWERS})])
    await decide(home)
    record = home.record
    assert record.usage_source == "estimated"
    assert record.cost_nano_usd == record.usage.input_tokens * 100 > 0


async def test_c81_a_refusal_answers_its_question_alone() -> None:
    home = await home_of(answered(REFUSED, CHOICE, SCORE))
    assert (await decide(home)).json["answers"] == [REFUSED, CHOICE, SCORE]


async def test_c81_what_is_unknown_inside_is_sent_on_and_returned() -> None:
    novel = [{**PREDICATE, "because": ["haste"]}, CHOICE, SCORE]
    home = await home_of(answered(*novel))
    part = {"type": "input_text", "text": "Hi", "prompt_cache_breakpoint": {"mode": "explicit"}}
    items = [
        *said(part, {"type": "input_json", "data": {"type": "input_image", "n": [1, None]}}),
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "done", "weight": 2.5},
    ]
    questions = [{**QUESTIONS[0], "strict": True}, *QUESTIONS[1:]]
    options = {"prompt_cache_key": "k", "prompt_cache_options": {"mode": "explicit"}}
    reply = await decide(
        home, input=items, questions=questions, safety_identifier="u-1", depth=3, **options
    )
    assert (reply.json["answers"], reply.headers["x-tollgate-adapted"]) == (novel, "depth")
    [sent] = home.near.requests
    expected = {"input": items, "questions": questions, "safety_identifier": "u-1", **options}
    assert sent.body == {"model": "d-1", **expected}
    assert home.record.user == "u-1"


async def test_c71_c81_pictures_are_fetched_where_the_provider_does_not() -> None:
    shelf = ShelvedMedia({PICTURE: FetchedMedia(content=png())})
    providers = {"near": provider(), "far": provider(dialect={"fetches_urls": ("image",)})}
    home = await home_of(refuses(529), far=answered(PREDICATE), media=shelf, providers=providers)
    items = said({"type": "input_text", "text": "Like it?"}, picture(PICTURE, detail="low"))
    asked = [{**QUESTIONS[0], "instructions": [picture(PNG)]}]
    assert (await decide(home, input=items, questions=asked)).status == 200
    inlined = said(items[0]["content"][0], picture(PNG, detail="low"))
    assert (home.near.requests[0].body["input"], shelf.asked) == (inlined, [PICTURE])
    assert home.far.requests[0].body["input"] == items
    assert home.far.requests[0].body["questions"] == asked
    trace = home.record.trace
    assert (trace.modalities, trace.input_tokens_max >= 2 * READ_TOKENS_MAX) == (
        ("image", "text"),
        True,
    )
    # The bytes of a picture are no text, and are held for as a picture.
    assert trace.input_tokens_max < 2 * READ_TOKENS_MAX + 1_000


@pytest.mark.parametrize(
    "answers",
    [
        [PREDICATE, CHOICE],
        [*ANSWERS, PREDICATE],
        [CHOICE, PREDICATE, SCORE],
        [{**PREDICATE, "probability": 1.5}, CHOICE, SCORE],
        [PREDICATE, {**CHOICE, "choice": "sales"}, SCORE],
        [PREDICATE, {**CHOICE, "choice": "true"}, SCORE],
        [PREDICATE, CHOICE, {"type": "score", "score": 1}],
        [{"type": "essay"}, CHOICE, SCORE],
        None,
    ],
)
async def test_c81_an_answer_that_does_not_fit_its_question_is_served_elsewhere(
    answers: Any,
) -> None:
    home = await home_of([frame({"answers": answers})], far=answered(*ANSWERS))
    assert (await decide(home)).json["answers"] == ANSWERS
    assert home.record.attempts[0].error == "provider_unavailable"


async def test_c81_an_answer_that_no_parser_reads_is_served_elsewhere() -> None:
    spoilt = json.dumps({"answers": ANSWERS}).encode().replace(b'"urgent"', b'"\xff"')
    home = await home_of([Frame(data=spoilt)], far=answered(*ANSWERS))
    assert (await decide(home)).json["answers"] == ANSWERS


async def test_c41_c81_a_model_of_texts_alone_refuses_pictures() -> None:
    home = await home_of(of_model={"input": ("text",)})
    reply = await decide(home, input=said(picture(PNG)))
    assert (reply.status, reply.error["code"]) == (400, "image_not_supported_by_model")


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("No Hurry up here", "No [prompt] here"),
        ("Bad: dear Ada Lovelace writes", "Bad: [prompt]"),
        ("Bad: is Ada angry today", "Bad: [prompt]"),
        # Names of the format are not the caller's text.
        ("An input text of a user message", "An input text of a user message"),
    ],
)
def test_c44_c81_texts_of_a_request_are_withheld(words: str, kept: str) -> None:
    parts = ("Hurry up", "From dear Ada Lovelace writes daily")
    evidence: list[JsonValue] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": part}]}
        for part in parts
    ]
    asked = ({"type": "predicate", "instructions": "is Ada angry today"},)
    work = DecisionRequest(model="m", evidence=evidence, questions=asked)
    assert withhold_prompt(words, work) == kept


ASKED = QUESTIONS[0]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": []}, "input"),
        ({"input": 7}, "input"),
        ({"input": [{"type": "reasoning"}]}, "input[0].type"),
        ({"input": said({"type": "input_file"})}, "input[0].content[0].type"),
        ({"input": said(picture("x"))}, "input[0].content[0].image_url"),
        ({"input": said({"type": "input_image"})}, "input[0].content[0].image_url"),
        ({"input": said(picture(data_url(PDF)))}, "input[0].content[0].image_url"),
        ({"input": said(*[picture(PICTURE)] * 129)}, "input[0].content[128]"),
        ({"questions": []}, "questions"),
        ({"questions": [ASKED] * 401}, "questions"),
        ({"questions": [{"type": "noul", "instructions": "a"}]}, "questions[0].type"),
        ({"questions": [{"type": "predicate"}]}, "questions[0].instructions"),
        (
            {"questions": [{**QUESTIONS[1], "choices": [{"value": 1}]}]},
            "questions[0].choices[0].value",
        ),
        ({"questions": [{**QUESTIONS[1], "choices": [{"value": "a"}]}]}, "questions[0].choices"),
        (
            {"questions": [{**QUESTIONS[1], "choices": [{"value": "a"}] * 2}]},
            "questions[0].choices",
        ),
        ({"questions": [{**QUESTIONS[2], "levels": [{"label": "a"}]}]}, "questions[0].levels"),
        (
            {"questions": [{**ASKED, "instructions": [picture("x")]}]},
            "questions[0].instructions[0].image_url",
        ),
        ({"model": None}, "model"),
    ],
)
async def test_c41_c81_bad_input_names_its_field_and_spends_nothing(
    fields: dict[str, Any], param: str
) -> None:
    home = await home_of(answered(*ANSWERS))
    reply = await decide(home, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert home.stores.books.records == {}
