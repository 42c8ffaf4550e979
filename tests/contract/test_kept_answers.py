"""C68: with an Idempotency-Key a request is generated and billed once."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import asdict

from tests.asgi import Exchange, request
from tests.faults.asker import Order
from tests.faults.processes import run_order, start
from tests.gateways import Always, House, house, request_body
from tests.nightly import first
from tests.scripted import Scripted, answers, refuses
from tests.stores import DynamoStores, funded_key
from tests.unit.engine.test_embeddings import home_of_vectors
from tollgate.aws.objects import ObjectStore
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.idempotency import Claim
from tollgate.engine.replies.kept_answers import RESULT_BYTES_KEPT_MAX
from tollgate.ingress.formats import COMPLETIONS, EMBEDDINGS, MESSAGES
from tollgate.providers.ports.base import Frame
from tollgate.stores.aws.decoding import read_number
from tollgate.stores.records.kept_answers import ABANDONED_AFTER_S, KEPT_FOR_S, DynamoAnswerStore
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

PATH = "/v1/chat/completions"


@pytest.fixture
def answer_store(dynamo: DynamoStores, objects: ObjectStore) -> DynamoAnswerStore:
    return DynamoAnswerStore(dynamo.client, dynamo.tables.core, objects, clock=dynamo.clock)


async def post(
    home: House,
    kept: DynamoAnswerStore | None,
    *,
    key: str = "once",
    stream: bool = False,
    other: bool = False,
) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits(), answers=kept)
    headers = {"authorization": f"Bearer {home.secret}", "idempotency-key": key}
    content = request_body("acme/small", stream=stream)
    if other:
        content = content.replace(b"{", b'{"seed": 1, ', 1)
    return await request(app, "POST", PATH, headers=headers, body=content)


def generations(home: House) -> int:
    return len(home.stores.books.records)


@pytest.mark.parametrize("stream", [False, True])
async def test_c68_the_same_request_is_answered_alike_and_billed_once(
    answer_store: DynamoAnswerStore, stream: bool
) -> None:
    home = await house()
    first = await post(home, answer_store, stream=stream)
    again = await post(home, answer_store, stream=stream)

    assert (first.status, again.status) == (200, 200)
    assert b"Hello" in first.body
    assert again.body == first.body
    assert again.headers["x-idempotent-replay"] == "true"
    assert "x-idempotent-replay" not in first.headers
    assert again.headers["x-generation-id"] == first.headers["x-generation-id"]
    assert again.headers["x-request-id"] != first.headers["x-request-id"]
    assert again.headers.get("x-credits-used", "0") == "0"
    assert generations(home) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_c68_c81_a_completion_of_several_prompts_is_answered_alike_and_billed_once(
    answer_store: DynamoAnswerStore, stream: bool
) -> None:
    home = await house(near=Scripted(answers("upon"), answers("a time")))
    app = chat_app(home.front, Always(home.gateway), WebLimits(), answers=answer_store)
    headers = {"authorization": f"Bearer {home.secret}", "idempotency-key": "once"}
    asked = {"model": "acme/small", "prompt": ["Once", "At"], "echo": True, "stream": stream}
    first, again = [
        await request(
            app, "POST", COMPLETIONS.path, headers=headers, body=json.dumps(asked).encode()
        )
        for _ in range(2)
    ]
    assert (first.status, again.body) == (200, first.body)
    assert b"Once" in first.body
    assert again.headers["x-idempotent-replay"] == "true"
    assert generations(home) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_c68_c80_a_message_is_answered_alike_and_billed_once(
    answer_store: DynamoAnswerStore, stream: bool
) -> None:
    home = await house()
    app = chat_app(home.front, Always(home.gateway), WebLimits(), answers=answer_store)
    headers = {"x-api-key": home.secret, "idempotency-key": "once"}
    asked = json.loads(request_body("acme/small", stream=stream, max_tokens=9))
    first, again = [
        await request(app, "POST", MESSAGES.path, headers=headers, body=json.dumps(asked).encode())
        for _ in range(2)
    ]
    assert (first.status, again.body) == (200, first.body)
    assert b"Hello" in first.body
    assert again.headers["x-idempotent-replay"] == "true"
    assert again.headers["request-id"] == again.headers["x-request-id"]
    assert again.headers["request-id"] != first.headers["request-id"]
    assert generations(home) == 1


async def test_c68_the_same_key_with_another_body_is_422(answer_store: DynamoAnswerStore) -> None:
    home = await house()
    await post(home, answer_store)
    other = await post(home, answer_store, other=True)
    assert (other.status, other.error["code"]) == (422, "idempotency_conflict")
    assert generations(home) == 1


async def test_c68_another_key_is_another_request(answer_store: DynamoAnswerStore) -> None:
    home = await house()
    await post(home, answer_store, key="a")
    await post(home, answer_store, key="b")
    assert generations(home) == 2


class Damaged:
    """Keeps an answer that nobody can read."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    async def claim(self, claim: Claim) -> bytes | None:
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}",
        b"[]\n[]",
        b'{"adapted": []}\n[[], {"$": "GenerationRecord"}, null]',
        b'{"served": {}, "events": [[0, {"type": "of_next_year"}]], "record": {}}',
    ],
)
async def test_c68_a_corrupt_answer_is_reported_and_not_made_again(
    answer: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    home = await house()
    reply = await post(home, Damaged(answer))  # type: ignore[arg-type]
    assert (reply.status, reply.error["code"]) == (409, "idempotency_conflict")
    assert "use a new key" in reply.error["message"]
    assert "is corrupt" in caplog.text
    assert generations(home) == 0


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\t"])
async def test_c68_a_key_that_makes_no_sense_is_400(
    answer_store: DynamoAnswerStore, key: str
) -> None:
    assert (await post(await house(), answer_store, key=key)).status == 400


async def test_c68_a_deployment_that_keeps_nothing_says_so() -> None:
    home = await house()
    assert (await post(home, None)).status == 400
    assert generations(home) == 0


async def test_c68_a_failure_is_not_kept(answer_store: DynamoAnswerStore) -> None:
    failing = refuses(400)
    home = await house(near=Scripted(failing, answers("Hello")))
    assert (await post(home, answer_store)).status == 400
    again = await post(home, answer_store)
    assert again.status == 200
    assert "x-idempotent-replay" not in again.headers


@pytest.mark.parametrize("embeds", first(1, [False, True]))
async def test_c68_c81_the_same_request_from_many_at_once_is_billed_once(
    honest: DynamoStores, honest_url: str, tmp_path: Path, embeds: bool
) -> None:
    """Two processes, each with many callers; a caller that gets 409 repeats its request."""
    secret, _ = await funded_key(honest, 10**12)
    order = Order(
        endpoint_url=honest_url,
        tables=asdict(honest.tables),
        folder=str(tmp_path),
        secret=secret,
        key="once",
        askers=16,
        embeds=embeds,
    )
    processes = [await start("tests.faults.asker") for _ in range(2)]

    said = await asyncio.gather(*(run_order(process, order) for process in processes))

    outcomes = Counter(outcome for each in said for outcome in each)
    assert set(outcomes) == {"made", "kept", "409"}
    assert (outcomes["made"], outcomes["kept"]) == (1, 31)
    records = await honest.client.call("Scan", {"TableName": honest.tables.generations})
    assert [read_number(item, "c") for item in records["Items"]] == [10 * 1_000 + 2 * 2_000]
    balance = await honest.credits.balance("acme")
    assert (balance.spent_nano_usd, balance.held_nano_usd) == (14_000, 0)


CLAIM = Claim(workspace_id="acme", key_hash="ab" * 32, body_hash="cd" * 32, request_id="first")
SECOND = Claim(workspace_id="acme", key_hash="ab" * 32, body_hash="cd" * 32, request_id="second")


async def conflict(answer_store: DynamoAnswerStore, claim: Claim) -> ErrorCode:
    with pytest.raises(RequestError) as raised:
        await answer_store.claim(claim)
    return raised.value.code


async def test_c68_while_one_runs_all_others_conflict(
    honest: DynamoStores, objects: ObjectStore
) -> None:
    answer_store = DynamoAnswerStore(honest.client, honest.tables.core, objects, clock=honest.clock)
    claims = [
        Claim(workspace_id="acme", key_hash="ab" * 32, body_hash="cd" * 32, request_id=f"r{n}")
        for n in range(8)
    ]
    outcomes = await asyncio.gather(
        *(answer_store.claim(claim) for claim in claims), return_exceptions=True
    )
    assert outcomes.count(None) == 1
    refused = [outcome for outcome in outcomes if isinstance(outcome, RequestError)]
    assert [error.code for error in refused] == [ErrorCode.IDEMPOTENCY_CONFLICT] * 7


async def test_c68_a_claim_whose_reply_was_lost_is_still_ours(
    answer_store: DynamoAnswerStore,
) -> None:
    assert await answer_store.claim(CLAIM) is None
    assert await answer_store.claim(CLAIM) is None


async def test_c68_a_claim_older_than_any_function_is_taken_over(
    answer_store: DynamoAnswerStore, dynamo: DynamoStores
) -> None:
    await answer_store.claim(CLAIM)
    dynamo.clock.now += ABANDONED_AFTER_S
    assert await conflict(answer_store, SECOND) is ErrorCode.IDEMPOTENCY_CONFLICT
    dynamo.clock.now += 1
    assert await answer_store.claim(SECOND) is None

    # The dead one comes back: it neither answers for the other nor takes its claim away.
    await answer_store.keep(CLAIM, b"late")
    await answer_store.release(CLAIM)
    assert await conflict(answer_store, CLAIM) is ErrorCode.IDEMPOTENCY_CONFLICT
    await answer_store.keep(SECOND, b"in time")
    assert await answer_store.claim(CLAIM) == b"in time"


async def test_c68_an_answer_is_kept_for_a_day(
    answer_store: DynamoAnswerStore, dynamo: DynamoStores
) -> None:
    await answer_store.claim(CLAIM)
    await answer_store.keep(CLAIM, b"kept")
    dynamo.clock.now += KEPT_FOR_S
    assert await answer_store.claim(SECOND) == b"kept"
    dynamo.clock.now += 1
    assert await answer_store.claim(SECOND) is None


async def test_c68_what_was_given_up_may_be_claimed_again(
    answer_store: DynamoAnswerStore,
) -> None:
    await answer_store.claim(CLAIM)
    await answer_store.release(CLAIM)
    assert await answer_store.claim(SECOND) is None


@pytest.mark.parametrize("name", ["", "/etc/passwd", "a/../b", "..", "a b", "a//b", "é"])
async def test_an_object_has_a_plain_name(objects: ObjectStore, name: str) -> None:
    with pytest.raises(ValueError, match="invalid object key"):
        await objects.put(name, b"")


async def test_an_object_reads_as_it_was_put(objects: ObjectStore) -> None:
    assert await objects.get("nothing/here") is None
    for body in (b"", bytes(range(256)) * 1000):
        await objects.put("some/name", body)
        assert await objects.get("some/name") == body


async def test_c68_c81_a_result_too_large_for_a_store_is_not_kept_and_made_again(
    answer_store: DynamoAnswerStore,
) -> None:
    vector = b"[0, 1, 2, %b 3]" % (b" " * RESULT_BYTES_KEPT_MAX)
    home = await home_of_vectors([Frame(data=b'{"data": [{"embedding": %b}]}' % vector)])
    app = chat_app(home.front, Always(home.gateway), WebLimits(), answers=answer_store)
    headers = {"authorization": f"Bearer {home.secret}", "idempotency-key": "once"}
    for _ in range(2):
        body = b'{"model": "acme/vec", "input": "a"}'
        reply = await request(app, "POST", EMBEDDINGS.path, headers=headers, body=body)
        assert reply.status == 200
        assert "x-idempotent-replay" not in reply.headers
    assert generations(home) == 2
