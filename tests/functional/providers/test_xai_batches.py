"""The batches of xAI over a socket: a file, counters in place of a status, pages of results.

Keeps C83.
"""

import json
from typing import Any

import pytest

from tests.functional.providers.one_provider import OneProvider
from tests.functional.providers.test_provider_batches import (
    CREATED_S,
    NAME,
    answers,
    batches_of,
    ok,
    requests,
)
from tests.upstream import FakeUpstream, Script
from tollgate.core.errors import UpstreamError
from tollgate.providers.transports.batches.calls import PAGES_MAX


def batch(cancelled: bool = False, message: str | None = None, **counts: int) -> Script:
    """A batch with these counts."""
    return ok(
        {
            "batch_id": "b",
            "name": NAME,
            "create_time": "2026-11-21",
            "cancel_time": "2026-11-21" if cancelled else None,
            "cancel_by_xai_message": message,
            "state": {f"num_{name}": count for name, count in counts.items()},
        }
    )


def page(*results: Any, more: str | None = None) -> Script:
    found = [{"batch_request_id": key, "batch_result": result} for key, result in results]
    return ok({"results": found, "pagination_token": more})


async def test_c83_xais_form_creates_a_batch_over_a_file_under_our_name(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "xai")
    upstream.enqueue(ok({"id": "file_1"}), batch())
    assert await batches.submit(NAME, requests("/chat/completions"), folder="jobs/") == "b"
    upload, create = upstream.received
    assert (upload.path, create.path) == ("/files", "/batches")
    assert upload.headers["authorization"] == create.headers["authorization"] == "Bearer sk-secret"
    sent = [json.loads(line) for line in upload.body.splitlines() if line.startswith(b'{"custom')]
    assert sent[0] == {
        "custom_id": f"{NAME}-0",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m:1", "messages": []},
    }
    assert create.json == {"name": NAME, "input_file_id": "file_1"}


async def test_c83_xais_form_derives_a_state_from_counters(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "xai")
    states = {
        "running": [
            batch(),
            batch(requests=8, pending=3, success=5),
            batch(cancelled=True, requests=8, pending=3),
        ],
        "ended": [
            batch(requests=8, success=7, error=1),
            batch(cancelled=True, requests=8, cancelled_by_us=8),
            batch(cancelled=True),
            # Requests that ran before xAI cancelled the batch are billed.
            batch(cancelled=True, message="No.", requests=8, success=1),
        ],
        "refused": [batch(cancelled=True, message="Line 2 is not JSON.")],
    }
    for state, scripts in states.items():
        for script in scripts:
            upstream.enqueue(script)
            assert await batches.get_state("b") == state


@pytest.mark.parametrize("cancelled", [False, True])
async def test_c83_xais_form_reads_pages_of_answers_and_of_errors_without_a_code(
    upstream: FakeUpstream, provider: OneProvider, cancelled: bool
) -> None:
    batches = batches_of(provider, "xai")
    upstream.enqueue(
        batch(cancelled=cancelled, requests=4),
        page(("1", {"response": {"chat_get_completion": {"id": "x"}}}), more="a/b"),
        page(("2", {"error": "Batch cancelled"}), ("3", {}), ("4", {"response": {}})),
    )
    found = await answers(batches, "b")
    assert [each.status for each in found] == [200, None if cancelled else 500, None, None]
    assert json.loads(found[0].body) == {"id": "x"}
    if not cancelled:
        assert json.loads(found[1].body) == {"error": "Batch cancelled"}
    assert upstream.received[-1].path == "/batches/b/results?limit=20&pagination_token=a%2Fb"
    upstream.enqueue(batch(cancelled=True))
    await batches.cancel("b")
    assert upstream.received[-1].path == "/batches/b:cancel"


async def test_c83_pages_of_xais_form_that_lead_in_a_circle_are_a_failure(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "xai")
    circle = ["a", "b"] * (PAGES_MAX // 2)
    upstream.enqueue(*(ok({"batches": [], "pagination_token": token}) for token in circle))
    with pytest.raises(UpstreamError):
        await batches.find(NAME, since_s=CREATED_S, count=2)
    upstream.enqueue(batch(requests=1), *(page(more=token) for token in circle))
    with pytest.raises(UpstreamError):
        await answers(batches, "b")
    assert upstream.unplayed == 0
