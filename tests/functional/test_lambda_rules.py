"""Rules of keys and of routing.yaml through the deployed path, in every format, streamed and not.

Keeps C56, C58, C86, C95, C107.
"""

from decimal import Decimal
from typing import Any

import pytest

from tests.deployment import Deployment, Workspace
from tests.upstream.speakers import BEDROCK, OPENAI

pytestmark = pytest.mark.asyncio(loop_scope="session")

CARD = "4111 1111 1111 1111"
QUOTA = "requests/day=1@alpha/*"
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/completions")


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
