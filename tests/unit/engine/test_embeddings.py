"""C81: embeddings from the request to the bill, on the path of every generation.

Keeps C26, C36, C41, C66, C68, C81.
"""

import asyncio
import json
from base64 import b64encode
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.scripted import FOREVER, Answer, Scripted, Silence, frame, refuses
from tests.unit.routing.catalogs import model, price, provider
from tests.upstream.vectors import listed, vector
from tollgate.core.events import Ended, Output, Started
from tollgate.engine.replies.kept_answers import KeptAnswer, replay
from tollgate.ingress.base import ServedBy
from tollgate.ingress.formats import EMBEDDINGS
from tollgate.ingress.work.embeddings.format import Embeddings
from tollgate.providers.ports.base import Frame
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

DIMENSIONS = 4
# Four times the 32-bit "not a number".
NO_NUMBERS = b'"%b"' % b64encode(b"\0\0\xc0\x7f" * DIMENSIONS)
SERVED = listed(3, tokens=7)


def offer(slug: str, upstream: str = "vec-1", **dialect: Any) -> dict[str, object]:
    rates = {name: rate for name, rate in price("100").items() if name != "output"}
    row: dict[str, object] = {"provider": slug, "upstream": upstream, "price": rates}
    return row | ({"dialect": {"embeddings": dialect}} if dialect else {})


def vectors(*endpoints: dict[str, object], **facts: Any) -> dict[str, object]:
    made = {"dimensions": DIMENSIONS, "shorter": (2,), **facts}
    section = model(*endpoints, kind="embedding", context=100, vectors=made)
    del section["max_output"]
    return section


async def home_of_vectors(
    *near: Answer, far: Scripted | None = None, models: dict[str, Any] | None = None, **dialect: Any
) -> House:
    return await house(
        near=Scripted(*near),
        far=far,
        providers={"near": provider(), "far": provider()},
        models=models
        or {
            "acme/vec": vectors(offer("near", **dialect), offer("far")),
            "acme/other": vectors(offer("far")),
            "acme/chat": model({"provider": "far", "upstream": "chat-1", "price": price()}),
        },
        aliases={},
        routes={},
    )


async def embed(home: House, **fields: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    body = {"model": "acme/vec", "input": ["a b", "c", "d e f"], **fields}
    return await request(
        app,
        "POST",
        f"/api{EMBEDDINGS.path}",
        headers={"authorization": f"Bearer {home.secret}"},
        body=json.dumps(body).encode(),
    )


async def test_c26_c66_c81_embeddings_are_billed_and_recorded_as_a_generation_is() -> None:
    home = await home_of_vectors([SERVED])
    reply = await embed(home)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert json.loads(reply.body) == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": vector(index)}
            for index in range(3)
        ],
        "model": "acme/vec",
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    }
    record = home.record
    assert (record.outcome, record.ingress_format) == ("ok", EMBEDDINGS.name)
    assert (record.trace.kind, record.trace.inputs) == ("embedding", 3)
    assert (record.usage.input_tokens, record.usage_source) == (7, "provider")
    assert record.cost_nano_usd == home.spent_nano_usd == 700_000
    assert reply.headers["x-generation-id"] == f"gen-{record.id}"
    assert reply.headers["x-model-used"] == "acme/vec"
    assert reply.headers["x-credits-used"] == "0.0007"
    # Nine bytes of text, eight tokens of marks for each input, and what rounding may add.
    assert record.held_nano_usd == (9 + 3 * 8) * 100_000 + 5


async def test_c81_a_provider_that_counts_more_than_the_bytes_is_cut_to_the_hold() -> None:
    home = await home_of_vectors([listed(3, tokens=1_000_000)])
    assert (await embed(home)).status == 200
    assert home.record.usage_source == "bounded"
    assert home.record.cost_nano_usd == home.record.held_nano_usd - 5


async def test_c65_c81_no_input_is_billed_beyond_the_context_of_its_model() -> None:
    home = await home_of_vectors([listed(1, tokens=1_000_000)])
    assert (await embed(home, input="x" * 300)).status == 200
    assert (home.record.usage_source, home.record.usage.input_tokens) == ("bounded", 100)


async def test_c81_usage_that_is_missing_is_estimated_by_size() -> None:
    home = await home_of_vectors([listed(3, tokens=None)])
    assert (await embed(home)).status == 200
    assert (home.record.usage_source, home.record.usage.input_tokens) == ("estimated", 4)


async def test_c81_usage_that_one_batch_does_not_report_is_estimated_for_all() -> None:
    answers = [[listed(1, tokens=tokens)] for tokens in (1, None, 1)]
    home = await home_of_vectors(*answers, inputs_max=1)
    assert (await embed(home)).status == 200
    assert (home.record.usage_source, home.record.usage.input_tokens) == ("estimated", 4)


async def test_c81_token_ids_count_exactly() -> None:
    home = await home_of_vectors([listed(2, tokens=None)], token_ids=True)
    reply = await embed(home, input=[[1, 2, 3], [4]])
    assert (reply.status, home.record.usage.input_tokens) == (200, 4)
    assert home.near.requests[0].body["input"] == [[1, 2, 3], [4]]
    assert len(home.record.attempts) == 1


async def test_c81_batches_are_joined_in_order_and_billed_as_one() -> None:
    # Each answer is late in its own way: the last one comes first.
    parts = [[Silence(3.0 - place), listed(1, tokens=2, first=place)] for place in range(3)]
    home = await home_of_vectors(*parts, inputs_max=1)
    reply = await embed(home)
    assert [each["embedding"] for each in reply.json["data"]] == [vector(each) for each in range(3)]
    assert [each["index"] for each in reply.json["data"]] == [0, 1, 2]
    assert len(home.near.requests) == 3
    assert home.record.cost_nano_usd == 600_000
    assert len(home.record.raw_usage) == 3


async def test_c81_a_batch_that_fails_moves_all_on_and_the_operator_pays_what_was_answered() -> (
    None
):
    first = [listed(1, tokens=2)]
    home = await home_of_vectors(
        first, first, [Silence(1.0), *refuses(529)], inputs_max=1, far=Scripted([SERVED])
    )
    assert (await embed(home)).status == 200
    failed, served = home.record.attempts
    assert (failed.provider, failed.error, served.provider) == (
        "near",
        "provider_overloaded",
        "far",
    )
    assert failed.operator_cost_nano_usd == 400_000
    assert home.record.cost_nano_usd == 700_000


async def test_c65_c81_usage_of_a_batch_before_one_that_fails_has_the_bound_of_the_inputs() -> None:
    home = await home_of_vectors(
        [listed(2, tokens=1_000_000)],
        [Silence(1.0), *refuses(529)],
        inputs_max=2,
        far=Scripted([SERVED]),
    )
    assert (await embed(home)).status == 200
    # Nine bytes of text, and eight tokens of marks for each input.
    assert home.record.attempts[0].operator_cost_nano_usd == (9 + 3 * 8) * 100_000


@pytest.mark.parametrize(
    "broken",
    [
        listed(2),
        listed(4),
        frame({"error": {"message": "no"}}),
        frame({"data": [{"index": place + 1, "embedding": vector(0)} for place in range(3)]}),
        frame({"data": [{"index": 0, "embedding": ["1", "2", "3", "4"]}] * 3}),
        frame({"data": [{"index": place, "embedding": [0.5]} for place in range(3)]}),
        frame({"data": [{"index": place, "embedding": "!"} for place in range(3)]}),
        frame({"data": [{"index": place, "embedding": None} for place in range(3)]}),
        frame([]),
        frame(
            {"data": [{"index": 2 - place or None, "embedding": vector(0)} for place in range(3)]}
        ),
        Frame(data=b'{"data": %b}' % (b"[" * 100_000 + b"]" * 100_000)),
        Frame(data=b'{"data": [], "model": "\xff"}'),
    ],
)
async def test_c81_an_answer_that_is_no_list_of_these_vectors_is_served_elsewhere(
    broken: Any,
) -> None:
    home = await home_of_vectors([broken], far=Scripted([SERVED]))
    assert (await embed(home)).status == 200
    assert home.record.attempts[0].error == "provider_unavailable"
    assert home.record.provider == "far"


@pytest.mark.parametrize(
    ("encoding", "embedding"),
    [("base64", b"[0, 0, 0, 1e999]"), ("base64", b"[0, 0, 0, 1e39]"), ("float", NO_NUMBERS)],
)
async def test_c26_c81_a_vector_without_the_requested_form_is_served_elsewhere_and_not_billed(
    encoding: str, embedding: bytes
) -> None:
    broken = Frame(data=b'{"data": [{"embedding": %b}], "usage": {"prompt_tokens": 1}}' % embedding)
    home = await home_of_vectors([broken], far=Scripted([listed(1, tokens=2)]))
    assert (await embed(home, input="a", encoding_format=encoding)).status == 200
    assert home.record.attempts[0].error == "provider_unavailable"
    assert home.spent_nano_usd == 200_000


async def test_c81_indexes_decide_the_order() -> None:
    backwards = [{"index": place, "embedding": vector(place)} for place in (2, 1, 0)]
    home = await home_of_vectors([frame({"data": backwards, "usage": {"total_tokens": 7}})])
    reply = await embed(home)
    assert [each["embedding"] for each in reply.json["data"]] == [vector(each) for each in range(3)]
    assert home.record.usage.input_tokens == 7


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"dimensions": 3}, "dimensions", "makes vectors with 2 or 4 dimensions"),
        ({"model": "acme/chat"}, "model", "is of kind chat (POST /chat/completions)"),
        ({"input": [[1], [2]]}, "input", "does not take token_ids"),
        ({"input": "x" * 700}, "input", "takes 100 tokens"),
        ({"input": ["a", ""]}, "input[1]", "must not be empty"),
        ({"input": ["a"] * 2_049}, "input", "at most 2048 entries"),
        ({"input": [1, 1_048_576]}, "input[1]", "at most 1048575"),
        ({"input": [True]}, "input[0]", "must be a string"),
    ],
)
async def test_c41_c81_bad_input_names_its_field_and_spends_nothing(
    fields: dict[str, Any], param: str, words: str
) -> None:
    home = await home_of_vectors([SERVED])
    reply = await embed(home, **fields)
    assert (reply.status, reply.error["param"]) == (400, param)
    assert words in reply.error["message"]
    assert home.stores.books.records == {}
    assert home.held_nano_usd == home.spent_nano_usd == 0
    assert home.near.requests == []


async def test_c81_a_chat_request_for_vectors_is_refused_by_name() -> None:
    home = await home_of_vectors([SERVED])
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    reply = await request(
        app,
        "POST",
        "/v1/chat/completions",
        headers={"authorization": f"Bearer {home.secret}"},
        body=b'{"model": "acme/vec", "messages": [{"role": "user", "content": "Hi"}]}',
    )
    assert (reply.status, reply.error["param"]) == (400, "model")
    assert "acme/vec is of kind embedding (POST /embeddings)" in reply.error["message"]


async def test_c81_no_model_of_another_space_stands_in() -> None:
    home = await home_of_vectors(refuses(529), far=Scripted(refuses(529)))
    reply = await embed(home, models=["acme/other"])
    assert reply.status == 529
    assert {each.model for each in home.record.attempts} == {"acme/vec"}


async def test_c36_c81_a_client_that_leaves_pays_nothing_and_nothing_stays_held() -> None:
    home = await home_of_vectors([FOREVER])
    task = asyncio.create_task(embed(home))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (home.record.outcome, home.spent_nano_usd) == ("cancelled", 0)


async def test_c68_c81_a_kept_answer_is_replayed_as_it_was_given() -> None:
    home = await home_of_vectors([SERVED])
    given = await embed(home)
    call = home.call("acme/vec")
    ingress = Embeddings(home.gateway.ids)
    parsed = ingress.parse(b'{"model": "acme/vec", "input": ["a b", "c", "d e f"]}')
    pieces = tuple(json.dumps(vector(place)).encode() for place in range(3))
    kept = KeptAnswer(
        served=ServedBy(generation_id="g", created_s=0, model="acme/vec", provider="near"),
        events=((0, Started()), (0, Output(pieces=pieces)), (0, Ended(finish="stop"))),
        record=home.record,
        episode_id=None,
    )
    reply = home.reply()
    await replay(
        KeptAnswer.from_bytes(kept.to_bytes()),
        home.gateway,
        reply,
        ingress,
        parsed=parsed,
        request_id=call.request_id,
    )
    assert reply.json == json.loads(given.body)
    assert reply.headers["x-idempotent-replay"] == "true"
    assert home.spent_nano_usd == 700_000


async def test_c81_vectors_are_converted_where_the_provider_has_no_base64() -> None:
    home = await home_of_vectors([SERVED])
    reply = await embed(home, encoding_format="base64")
    assert "encoding_format" not in home.near.requests[0].body
    assert reply.json["data"][0]["embedding"] == "AAAAAAAAgD4AAAA/AABAPw=="


async def test_what_a_provider_repeats_of_an_input_is_withheld() -> None:
    quoting = refuses(400)
    quoting[0].body = b'{"error": {"message": "bad input: the secret plan of Hagen"}}'
    home = await home_of_vectors(quoting)
    assert (await embed(home, input="the secret plan of Hagen")).status == 400
    assert "secret plan" not in home.record.attempts[0].provider_words
