"""Pictures in answers: requested on chat, shown in every client format, billed by their tokens.

Frames are after Gemini's and OpenRouter's documentation, and synthetic.

Keeps C11, C25, C26, C37, C81.
"""

import json
from typing import Any

import pytest
from msgspec import structs

from tests.gateways import House, house
from tests.pictures import png_text
from tests.scripted import Scripted, frame
from tests.unit.engine.client_formats import CLIENT_FORMATS
from tests.unit.routing.catalogs import endpoint, model, provider
from tollgate.engine.replies.kept_answers import KeptAnswer
from tollgate.ingress.base import ServedBy
from tollgate.providers.codecs.gemini.decode import GeminiDecoder
from tollgate.providers.ports.base import Frame
from tollgate.providers.ports.formats import FormatName, codec_of
from tollgate.routing.price import bill

PNG = png_text()
SIGNATURE = "c2lnbmF0dXJl"
URL = f"data:image/png;base64,{PNG}"
GEMINI = [
    frame({"candidates": [{"content": {"parts": [{"text": "A cat: "}]}}]}),
    frame(
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {
                                "inlineData": {"mimeType": "image/png", "data": PNG},
                                "thoughtSignature": SIGNATURE,
                            }
                        ]
                    },
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {
                "promptTokenCount": 10,
                "candidatesTokenCount": 1295,
                "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}],
            },
        }
    ),
]
OPENROUTER = [
    frame({"id": "1", "choices": [{"index": 0, "delta": {"content": "A cat: "}}]}),
    frame(
        {
            "id": "1",
            "choices": [
                {
                    "index": 0,
                    "delta": {"images": [{"type": "image_url", "image_url": {"url": URL}}]},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 1295},
        }
    ),
]
CAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Draw a cat"}]}
IMAGED = CAT | {"modalities": ["text", "image"]}


async def painter(codec: FormatName, *answers: list[Frame], makes: bool = True) -> House:
    offer = endpoint("near", "m-1", dollars_in="0.3", dollars_out="2.5", image_output="30")
    facts = {"makes": ("text", "image")} if makes else {}
    return await house(
        near=Scripted(*answers),
        codec=codec_of(codec),
        providers={"near": provider(codec=codec), "far": provider()},
        models={"acme/large": model(offer, input=("text", "image"), **facts)},
        aliases={},
        routes={},
    )


@pytest.mark.parametrize(("codec", "answer"), [("gemini", GEMINI), ("openai_chat", OPENROUTER)])
@pytest.mark.parametrize("stream", [True, False])
async def test_c25_c37_a_picture_is_an_image_of_the_message(
    codec: FormatName, answer: list[Frame], stream: bool
) -> None:
    home = await painter(codec, answer)
    chat = CLIENT_FORMATS["chat_completions"]
    reply = await chat.ask(home, IMAGED, stream=stream)
    assert reply.status == 200, reply.body
    message = chat.whole(reply)["choices"][0]["message"]
    assert message["content"] == "A cat: "
    [image] = message["images"]
    assert image["image_url"] == {"url": URL}
    sent = home.near.requests[0].body
    if codec == "gemini":
        assert sent["generationConfig"]["responseModalities"] == ["IMAGE", "TEXT"]
        assert image["extra_content"] == {"google": {"thought_signature": SIGNATURE}}
    else:
        assert sent["modalities"] == ["image", "text"]


@pytest.mark.parametrize(
    ("details", "drawn", "source"),
    [
        ({"completion_tokens_details": {"image_tokens": 1280}}, 1280, "provider"),
        ({}, 1290, "estimated"),
    ],
)
async def test_c26_c66_c81_a_picture_of_a_like_server_is_billed_as_one(
    details: dict[str, Any], drawn: int, source: str
) -> None:
    first, last = OPENROUTER
    said = json.loads(last.data)
    home = await painter("openai_chat", [first, frame(said | {"usage": said["usage"] | details})])
    await CLIENT_FORMATS["chat_completions"].ask(home, IMAGED, stream=True)
    record = home.record
    assert [(line.item, line.quantity) for line in record.lines] == [
        ("input", 10),
        ("output", 1295 - drawn),
        ("output_image", drawn),
    ]
    assert record.usage_source == source


async def test_c26_c81_tokens_of_pictures_have_their_own_line() -> None:
    home = await painter("gemini", GEMINI)
    await CLIENT_FORMATS["chat_completions"].ask(home, IMAGED, stream=True)
    record = home.record
    assert [(line.item, line.quantity) for line in record.lines] == [
        ("input", 10),
        ("output", 5),
        ("output_image", 1290),
    ]
    assert record.usage_source == "provider"
    assert record.usage.images == 1
    price = home.catalog.models["acme/large"].endpoints[0].schedule.at(record.created_s, 10)
    assert record.lines == bill(record.usage, price)


async def test_c26_a_picture_whose_tokens_nobody_counts_is_estimated() -> None:
    chunks = [structs.replace(each) for each in OPENROUTER]
    uncounted = chunks[1].data.replace(b'"usage"', b'"nothing"')
    home = await painter("openai_chat", [chunks[0], structs.replace(chunks[1], data=uncounted)])
    await CLIENT_FORMATS["chat_completions"].ask(home, IMAGED, stream=True)
    record = home.record
    assert record.usage_source == "estimated"
    assert record.usage.output_tokens == 1_292


@pytest.mark.parametrize("name", ["messages", "responses", "completions"])
@pytest.mark.parametrize("stream", [True, False])
async def test_c37_a_picture_that_a_format_has_no_place_for_is_not_dropped(
    name: str, stream: bool
) -> None:
    home = await painter("gemini", GEMINI)
    client = CLIENT_FORMATS[name]
    body = (
        {"messages": CAT["messages"], "max_tokens": 99}
        if name == "messages"
        else {"input" if name == "responses" else "prompt": "Draw a cat"}
    )
    reply = await client.ask(home, body, stream=stream)
    assert reply.status == 200, reply.body
    whole = client.whole(reply)
    if name == "responses":
        text, image = whole["output"]
        assert (text["type"], image["type"]) == ("message", "image_generation_call")
        assert image["result"] == PNG
    else:
        assert f"![image]({URL})" in client.words(whole)


async def test_c10_a_picture_goes_back_with_its_signature() -> None:
    home = await painter("gemini", GEMINI, GEMINI)
    chat = CLIENT_FORMATS["chat_completions"]
    answer = chat.whole(await chat.ask(home, IMAGED, stream=True))["choices"][0]["message"]
    turns = [*CAT["messages"], answer, {"role": "user", "content": "Now a dog"}]
    again = await chat.ask(home, IMAGED | {"messages": turns}, stream=False)
    assert again.status == 200, again.body
    assert "x-tollgate-adapted" not in again.headers
    model_turn = home.near.requests[1].body["contents"][1]
    assert model_turn["parts"] == [
        {"text": "A cat: "},
        {
            "inlineData": {"mimeType": "image/png", "data": PNG},
            "thoughtSignature": SIGNATURE,
        },
    ]


async def test_c13_a_picture_that_an_endpoint_does_not_read_back_is_named() -> None:
    home = await painter("openai_chat", OPENROUTER)
    turns = [
        *CAT["messages"],
        {"role": "assistant", "images": [{"type": "image_url", "image_url": {"url": URL}}]},
        {"role": "user", "content": "What was it?"},
    ]
    reply = await CLIENT_FORMATS["chat_completions"].ask(home, {"messages": turns}, stream=False)
    assert reply.status == 200, reply.body
    assert reply.headers["x-tollgate-adapted"] == "messages[].images"
    assert "base64" not in str(home.near.requests[0].body)


async def test_c11_a_model_that_makes_no_pictures_is_refused_before_anything_is_spent() -> None:
    home = await painter("gemini", GEMINI, makes=False)
    reply = await CLIENT_FORMATS["chat_completions"].ask(home, IMAGED, stream=True)
    assert (reply.status, reply.error["param"]) == (400, "modalities")
    assert home.near.requests == []
    assert home.stores.books.records == {}


@pytest.mark.parametrize(
    ("image", "param"),
    [
        ("x", "messages[1].images[0]"),
        ({"image_url": {"url": ""}}, "messages[1].images[0].image_url.url"),
        (
            {"image_url": {"url": "https://example.com/x.png"}},
            "messages[1].images[0].image_url.url",
        ),
        (
            {"image_url": {"url": "data:image/png;base64,AAAA"}},
            "messages[1].images[0].image_url.url",
        ),
    ],
)
async def test_c13_a_picture_that_is_none_is_refused_by_name(image: Any, param: str) -> None:
    home = await painter("gemini", GEMINI)
    turns = [*CAT["messages"], {"role": "assistant", "content": "x", "images": [image]}]
    reply = await CLIENT_FORMATS["chat_completions"].ask(home, {"messages": turns}, stream=False)
    assert (reply.status, reply.error["param"]) == (400, param)


def instead(frames: list[Frame], old: str, new: str) -> list[Frame]:
    return [Frame(data=each.data.replace(old.encode(), new.encode())) for each in frames]


@pytest.mark.parametrize(("codec", "frames"), [("gemini", GEMINI), ("openai_chat", OPENROUTER)])
@pytest.mark.parametrize("content", ["AAAA", "%%%%", "PGh0bWw+"])
async def test_c81_what_is_no_picture_is_a_failure_of_its_provider(
    codec: FormatName, frames: list[Frame], content: str
) -> None:
    home = await painter(codec, instead(frames, PNG, content))
    reply = await CLIENT_FORMATS["chat_completions"].ask(home, CAT, stream=False)
    assert (reply.status, reply.error["code"]) == (502, "provider_unavailable")


@pytest.mark.parametrize(("codec", "frames"), [("gemini", GEMINI), ("openai_chat", OPENROUTER)])
async def test_c81_a_picture_has_the_type_of_its_content(
    codec: FormatName, frames: list[Frame]
) -> None:
    home = await painter(codec, instead(frames, "image/png", "image/svg+xml"))
    reply = await CLIENT_FORMATS["chat_completions"].ask(home, CAT, stream=False)
    [shown] = reply.json["choices"][0]["message"]["images"]
    assert shown["image_url"]["url"] == URL


async def test_c60_a_kept_answer_keeps_its_picture() -> None:
    home = await painter("gemini", GEMINI)
    await home.serve()
    decoder = GeminiDecoder("near")
    kept = KeptAnswer(
        served=ServedBy(generation_id="g", created_s=1, model="m", provider="near"),
        events=tuple((0, event) for each in GEMINI for event in decoder.feed(each)),
        record=home.record,
        episode_id=None,
    )
    assert KeptAnswer.from_bytes(kept.to_bytes()) == kept
