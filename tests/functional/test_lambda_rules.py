"""Rules of keys and of routing.yaml through the deployed path, in every format, streamed and not.

Keeps C54, C56, C58, C59, C86, C95, C102, C107.
"""

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import boto3
import pytest
import pytest_asyncio

from tests.buckets import create_bucket
from tests.deployment import Deployment, Workspace, deployed
from tests.functional.test_lambda_publish import priced
from tests.ministack import ministack_command, running_ministack
from tests.stores import an_entry
from tests.upstream.speakers import BEDROCK, OPENAI
from tollgate.core.clock import SystemClock
from tollgate.core.routing.publication import Signature, publish_canary, publish_to_all
from tollgate.core.shadows import SHADOW_PREFIX
from tollgate.stores.ports.batches import BatchPlace
from tollgate.wiring.shadows import wire_shadow_store

pytestmark = pytest.mark.asyncio(loop_scope="session")

CARD = "4111 1111 1111 1111"
BUCKET = "tollgate-objects"
QUOTA = "requests/day=1@alpha/*"
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/completions")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deployment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    """Functions with a bucket for answers and contents, and a queue of jobs."""
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make .tools/ministack/stamp`")
    folder = tmp_path_factory.mktemp("rules")
    with running_ministack(folder, services="dynamodb,s3,sqs") as url:
        create_bucket(url, BUCKET)
        queue = sqs(url).create_queue(QueueName="background")["QueueUrl"]
        async with deployed(url, folder, bucket=BUCKET, answers_queue=queue) as running:
            await publish_candidate(running)
            yield running


async def publish_candidate(deployment: Deployment) -> None:
    """Publish the deployment's catalog for all keys, and a dearer candidate for half of them."""
    publications = deployment.stores.publications
    content = deployment.settings.catalog_file.read_bytes()
    # Requests wait for catalogs that have been published for a while.
    signature = Signature(by="test", at_s=int(SystemClock().now_s()) - 3_600)
    live = publish_to_all(None, await publications.keep(content), signature)
    await publications.move(live, an_entry())
    candidate = await publications.keep(priced(content, 5))
    await publications.move(publish_canary(live, candidate, 50, signature), an_entry())


def sqs(url: str) -> Any:
    return boto3.client(
        "sqs",
        "us-east-1",
        endpoint_url=url,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


async def count_jobs(deployment: Deployment) -> int:
    """The messages in the queue of jobs; those of shadows are delayed."""
    settings = deployment.settings
    assert settings.dynamodb_endpoint_url is not None
    queue = await asyncio.to_thread(
        sqs(settings.dynamodb_endpoint_url).get_queue_attributes,
        QueueUrl=settings.background_queue_url,
        AttributeNames=["All"],
    )
    names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed")
    return sum(int(queue["Attributes"][name]) for name in names)


def body(path: str, text: str = "Say it", **fields: Any) -> dict[str, Any]:
    """The same request in the format of a path."""
    match path:
        case "/v1/responses":
            asked: dict[str, Any] = {"input": text, "max_output_tokens": 50}
        case "/v1/completions":
            asked = {"prompt": text, "max_tokens": 50}
        case _:
            asked = {"messages": [{"role": "user", "content": text}], "max_tokens": 50}
    return {"model": "chain", **asked, **fields}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_c56_c95_c107_rules_apply_to_requests_through_the_functions(
    deployment: Deployment, workspace: Workspace, path: str, stream: bool
) -> None:
    ruled = await deployment.workspace(
        quotas=QUOTA, guardrails="cards", warn_at=1, limits_nano_usd={"day": 5_000_000}
    )
    key, upstreams = ruled.inference, deployment.upstreams

    upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Hi"])))
    named = body(path, model="preset/brief", stream=stream)
    first = await deployment.ask("POST", path, key, body=named)
    assert (first.status, first.headers["x-model-used"]) == (200, "alpha/one"), first.body
    assert first.headers["x-tollgate-limit-warning"].startswith("day ")
    record = await deployment.record(ruled, first.headers["x-generation-id"])
    assert record.trace.preset == "brief"
    assert [(each.guardrail, each.verdict) for each in record.judgements] == [("cards", "pass")]
    assert record.limit_warning == first.headers["x-tollgate-limit-warning"]

    upstreams.bedrock.enqueue(BEDROCK.script(BEDROCK.text(["Hi"])))
    second = await deployment.ask("POST", path, key, body=body(path, stream=stream))
    assert (second.status, second.headers["x-model-used"]) == (200, "bedrock/one"), second.body
    record = await deployment.record(ruled, second.headers["x-generation-id"])
    assert record.trace.quotas_used_up == (QUOTA,)

    refused = await deployment.ask("POST", path, key, body=body(path, CARD, stream=stream))
    assert refused.status == 400
    assert b"card_number" in refused.body
    assert await deployment.holds(ruled) == {}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_c58_c95_ceilings_and_prompt_policies_refuse_through_the_functions(
    deployment: Deployment, workspace: Workspace, path: str, stream: bool
) -> None:
    asked = body(path, stream=stream)
    capped = await deployment.workspace(max_cost=Decimal("0.000001"))
    dear = await deployment.ask("POST", path, capped.inference, body=asked)
    assert dear.status == (429 if path == "/v1/responses" else 402), dear.body
    assert b'"max_cost"' in dear.body
    careful = await deployment.workspace(prompt_policy="no_training")
    unknown = await deployment.ask("POST", path, careful.inference, body=asked)
    assert unknown.status == 403, unknown.body
    assert b"to leave prompts out of training" in unknown.body


async def test_c107_the_buffered_function_explains_a_quota_that_is_used_up(
    deployment: Deployment, workspace: Workspace
) -> None:
    ruled = await deployment.workspace(quotas=QUOTA)
    deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Hi"])))
    served = await deployment.ask("POST", PATHS[0], ruled.inference, body=body(PATHS[0]))
    assert served.status == 200
    explained = await deployment.ask(
        "POST", "/v1/route/explain", ruled.inference, body=body(PATHS[0])
    )
    assert [each["used_up"] for each in explained.json["quotas"]] == [True]
    removed = {each["model"]: each["removed"] for each in explained.json["candidates"]}
    assert removed["alpha/one"] == f"has used up the quota {QUOTA}"
    assert removed["bedrock/one"] is None


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_c59_c102_c107_a_route_is_sorted_shadowed_and_cached_through_the_functions(
    deployment: Deployment, workspace: Workspace, path: str, stream: bool
) -> None:
    ruled = await deployment.workspace(answer_cache="key", content_days=7)
    more = {"store": False} if path == "/v1/responses" else {}
    asked = body(path, model="measured", stream=stream, **more)
    jobs = await count_jobs(deployment)

    deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Hi"])))
    first = await deployment.ask("POST", path, ruled.inference, body=asked)
    assert (first.status, first.headers["x-tollgate-cache"]) == (200, "miss"), first.body
    original = await deployment.record(ruled, first.headers["x-generation-id"])
    assert original.trace.sorted_by == "latency"
    runs = wire_shadow_store(deployment.stores, SystemClock())
    run = await runs.get(BatchPlace(ruled.id, SHADOW_PREFIX + original.id))
    assert run is not None
    assert await count_jobs(deployment) == jobs + 1
    shown = await deployment.ask("GET", f"/v1/generation?id={original.id}", ruled.inference)
    assert (shown.status, shown.json["data"]["shadowed_by"]) == (200, None), shown.body

    second = await deployment.ask("POST", path, ruled.inference, body=asked)
    assert (second.status, second.headers["x-tollgate-cache"].split(";")[0]) == (200, "hit")
    assert b"Hi" in second.body
    hit = await deployment.record(ruled, second.headers["x-generation-id"])
    assert hit.reused is not None
    assert (hit.reused.generation_id, hit.cost_nano_usd) == (original.id, 0)
    await deployment.assert_books_closed(ruled, original.cost_nano_usd)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_c95_the_limits_of_a_session_refuse_through_the_functions(
    deployment: Deployment, workspace: Workspace, path: str, stream: bool
) -> None:
    limited = await deployment.workspace(session_requests=1, session_budget=Decimal(1))
    asked, run = body(path, stream=stream), {"x-session-id": "run-1"}
    deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Hi"])))
    served = await deployment.ask("POST", path, limited.inference, body=asked, named=run)
    assert served.status == 200, served.body
    lower = {"x-session-id": "run-2", "x-tollgate-session-budget": "0.000001"}
    for named, kind in ((run, "requests"), (lower, "total")):
        refused = await deployment.ask("POST", path, limited.inference, body=asked, named=named)
        assert refused.status == (429 if path == "/v1/responses" else 402), refused.body
        limit = refused.json["error"]["limit"]
        assert (limit["level"], limit["kind"]) == ("session", kind)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_c56_answers_are_masked_and_refused_through_the_functions(
    deployment: Deployment, workspace: Workspace, path: str, stream: bool
) -> None:
    ruled = await deployment.workspace(guardrails="leaks,addresses")
    asked = body(path, stream=stream)
    deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["To ada@exa", "mple.com"])))
    masked = await deployment.ask("POST", path, ruled.inference, body=asked)
    assert masked.status == 200, masked.body
    assert b"[email]" in masked.body
    assert b"mple.com" not in masked.body
    deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Pay with ", CARD])))
    blocked = await deployment.ask("POST", path, ruled.inference, body=asked)
    assert blocked.status == 200, blocked.body
    assert (b"refusal" if path == "/v1/messages" else b"content_filter") in blocked.body
    assert b"1111" not in blocked.body
    record = await deployment.record(ruled, blocked.headers["x-generation-id"])
    verdicts = {each.guardrail: (each.stage, each.verdict) for each in record.judgements}
    assert verdicts["leaks"] == ("output", "block")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_c54_c107_a_candidate_serves_its_keys_through_the_functions(
    deployment: Deployment, workspace: Workspace, path: str, stream: bool
) -> None:
    publication = await deployment.stores.publications.publication()
    assert publication is not None
    by_sha: dict[str, Workspace] = {}
    while len(by_sha) < 2:
        made = await deployment.workspace()
        by_sha[publication.sha_for(made.inference.id)] = made
    for sha, served in by_sha.items():
        deployment.upstreams.alpha.enqueue(OPENAI.script(OPENAI.text(["Hi"])))
        reply = await deployment.ask("POST", path, served.inference, body=body(path, stream=stream))
        assert reply.status == 200, reply.body
        record = await deployment.record(served, reply.headers["x-generation-id"])
        is_candidate = sha == publication.candidate
        assert (record.catalog_sha, record.trace.is_candidate) == (sha, is_candidate)
