"""The batches of providers over a socket, in each form.

Keeps C83.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.functional.providers.one_provider import CHAT, OneProvider
from tests.upstream import FakeUpstream, Script
from tollgate.core.errors import UpstreamError
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    BatchForm,
    BatchTerms,
    NotAccepted,
    NotYetKnown,
    ProviderBatches,
)
from tollgate.providers.transports.batches.calls import PAGES_MAX

NAME = "57KCys---0r4dsQ"
BODY = {"model": "m:1", "messages": [], "stream": True}
CREATED = {"created_at": "2026-11-21T12:00:00.100435Z"}
CREATED_S = 1_795_262_400.0


def batches_of(provider: OneProvider, form: BatchForm) -> ProviderBatches:
    auth = {"anthropic": {"auth": "x-api-key"}, "gemini": {"auth": "x-goog-api-key"}}
    terms = BatchTerms(form=form, percent=50)
    found = provider.provider(CHAT, batch=terms, **auth.get(form, {})).batches
    assert found is not None
    return found()


def requests(path: str, count: int = 2, **headers: str) -> list[BatchedRequest]:
    return [
        BatchedRequest(
            custom_id=f"{NAME}-{number}",
            path=path,
            body={**BODY, "stream_options": {}} if path != "/messages" else BODY,
            headers=headers,
        )
        for number in range(count)
    ]


def jsonl(*lines: object) -> Script:
    """A file of lines, whose chunks break within lines."""
    content = b"\n".join(json.dumps(line).encode() for line in lines)
    return Script(
        headers={"content-type": "application/octet-stream"},
        chunks=[content[start : start + 50] for start in range(0, len(content), 50)],
    )


def ok(body: object) -> Script:
    return Script.json(200, body)


async def answers(batches: ProviderBatches, batch_id: str) -> Sequence[BatchedAnswer]:
    return [answer async for answer in batches.read_answers(batch_id)]


async def test_c83_openais_form_uploads_a_file_and_creates_a_batch_over_it(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "openai")
    upstream.enqueue(ok({"id": "file-1"}), ok({"id": "batch-1", "status": "validating"}))
    assert await batches.submit(NAME, requests("/chat/completions"), folder="jobs/") == "batch-1"
    upload, create = upstream.received
    assert (upload.method, upload.path, create.path) == ("POST", "/files", "/batches")
    assert upload.headers["authorization"] == create.headers["authorization"] == "Bearer sk-secret"
    assert b'name="purpose"\r\n\r\nbatch\r\n' in upload.body
    sent = [json.loads(line) for line in upload.body.splitlines() if line.startswith(b'{"custom')]
    assert [line["custom_id"] for line in sent] == [f"{NAME}-0", f"{NAME}-1"]
    assert sent[0] == {
        "custom_id": f"{NAME}-0",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m:1", "messages": []},
    }
    assert create.json == {
        "input_file_id": "file-1",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {"tollgate": NAME},
    }


async def test_c83_openais_form_reads_the_output_and_the_errors(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "openai")
    states = ("validating", "in_progress", "finalizing", "cancelling", "completed", "failed")
    upstream.enqueue(*(ok({"id": "b", "status": state}) for state in states))
    assert [await batches.get_state("b") for _ in states] == [*["running"] * 4, "ended", "refused"]
    upstream.enqueue(
        ok({"id": "b", "status": "expired", "output_file_id": "out", "error_file_id": "err"}),
        jsonl({"custom_id": "1", "response": {"status_code": 200, "body": {"id": "é" * 60}}}),
        jsonl(
            {"custom_id": "2", "response": {"status_code": 400, "body": {"error": {}}}},
            {"custom_id": "3", "response": None, "error": {"code": "batch_expired"}},
            {"custom_id": "4", "error": {"code": "InvalidParameter", "message": "No."}},
            {"custom_id": "5", "error": "No."},
            {"custom_id": "6", "response": None},
        ),
    )
    first, second, third, *others = await answers(batches, "b")
    # A failed request counts as one that ran, so it does not make the batch expire.
    assert [each.status for each in others] == [500, 500, None]
    assert json.loads(others[0].body)["error"]["message"] == "No."
    assert (first.custom_id, first.status) == ("1", 200)
    assert json.loads(first.body) == {"id": "é" * 60}
    assert (second.status, third.status) == (400, None)
    assert [each.path for each in upstream.received[-2:]] == [
        "/files/out/content",
        "/files/err/content",
    ]


async def test_c83_openais_form_finds_a_batch_by_its_metadata(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "openai")

    def page(batch_id: str, name: str | None, created_s: float) -> Script:
        metadata = None if name is None else {"tollgate": name}
        batch = {"id": batch_id, "created_at": created_s, "metadata": metadata}
        return ok({"data": [batch], "has_more": True})

    upstream.enqueue(page("b-3", None, CREATED_S + 9), page("b-2", NAME, CREATED_S + 1))
    assert await batches.find(NAME, since_s=CREATED_S, count=2) == "b-2"
    assert upstream.received[-1].path == "/batches?limit=100&after=b-3"
    upstream.enqueue(page("b-3", None, CREATED_S + 9), page("b-1", "other", CREATED_S - 900))
    assert await batches.find(NAME, since_s=CREATED_S, count=2) is None
    assert upstream.unplayed == 0


async def test_c83_anthropics_form_sends_the_requests_in_one_body(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "anthropic")
    upstream.enqueue(ok({"id": "msgbatch_1", "processing_status": "in_progress", **CREATED}))
    sent = requests("/messages", **{"anthropic-version": "2023-06-01", "anthropic-beta": "b1"})
    assert await batches.submit(NAME, sent, folder="jobs/") == "msgbatch_1"
    [create] = upstream.received
    assert (create.path, create.headers["x-api-key"]) == ("/messages/batches", "sk-secret")
    assert create.headers["anthropic-beta"] == "b1"
    params = {"model": "m:1", "messages": []}
    assert create.json == {
        "requests": [{"custom_id": f"{NAME}-{number}", "params": params} for number in range(2)]
    }


async def test_c83_anthropics_form_reads_all_kinds_of_results(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "anthropic")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}
    upstream.enqueue(
        jsonl(
            {"custom_id": "1", "result": {"type": "succeeded", "message": {"id": "msg_1"}}},
            {"custom_id": "2", "result": {"type": "errored", "error": error}},
            {"custom_id": "3", "result": {"type": "expired"}},
            {"custom_id": "4", "result": {"type": "canceled"}},
        )
    )
    found = await answers(batches, "msgbatch_1")
    assert [each.status for each in found] == [200, 529, None, None]
    assert (json.loads(found[0].body), json.loads(found[1].body)) == ({"id": "msg_1"}, error)
    assert upstream.received[0].path == "/messages/batches/msgbatch_1/results"


async def test_c83_anthropics_form_finds_a_batch_by_its_results(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "anthropic")

    def page(status: str, count: int = 2) -> Script:
        batch = {"id": "m", "processing_status": status, "request_counts": {"x": count}, **CREATED}
        return ok({"data": [batch], "has_more": False})

    def first(name: str) -> Script:
        return jsonl({"custom_id": f"{name}-0", "result": {"type": "expired"}})

    find = {"since_s": CREATED_S, "count": 2}
    upstream.enqueue(page("ended"), first(NAME))
    assert await batches.find(NAME, **find) == "m"
    upstream.enqueue(page("ended"), first("other"))
    assert await batches.find(NAME, **find) is None
    upstream.enqueue(page("ended", count=3))
    assert await batches.find(NAME, **find) is None
    upstream.enqueue(page("in_progress"))
    with pytest.raises(NotYetKnown):
        await batches.find(NAME, **find)
    assert upstream.unplayed == 0


async def test_c83_mistrals_form_creates_a_job_for_one_model(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "mistral")
    upstream.enqueue(ok({"id": "file-1"}), ok({"id": "job-1", "status": "QUEUED"}))
    assert await batches.submit(NAME, requests("/chat/completions"), folder="jobs/") == "job-1"
    upload, create = upstream.received
    assert (upload.path, create.path) == ("/files", "/batch/jobs")
    sent = [json.loads(line) for line in upload.body.splitlines() if line.startswith(b'{"custom')]
    body = {"model": "m:1", "messages": []}
    assert sent == [{"custom_id": f"{NAME}-{number}", "body": body} for number in range(2)]
    assert create.json == {
        "input_files": ["file-1"],
        "endpoint": "/v1/chat/completions",
        "model": "m:1",
        "timeout_hours": 24,
        "metadata": {"tollgate": NAME},
    }


async def test_c83_mistrals_form_reads_both_files_and_knows_all_states(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "mistral")
    running, ended = ("QUEUED", "RUNNING", "CANCELLATION_REQUESTED"), ("SUCCESS", "CANCELLED")
    states = (*running, *ended, "TIMEOUT_EXCEEDED", "FAILED")
    upstream.enqueue(*(ok({"id": "j", "status": state}) for state in states))
    found = [await batches.get_state("j") for _ in states]
    assert found == [*["running"] * 3, *["ended"] * 3, "refused"]
    # Lines of a failed job that were answered are also billed.
    upstream.enqueue(ok({"id": "j", "status": "FAILED", "succeeded_requests": 1}))
    assert await batches.get_state("j") == "ended"
    upstream.enqueue(
        ok({"id": "j", "status": "SUCCESS", "output_file": "out", "error_file": "err"}),
        jsonl({"custom_id": "1", "response": {"status_code": 200, "body": {"id": "x"}}}),
        jsonl({"custom_id": "2", "response": {"status_code": 422, "body": {"detail": []}}}),
    )
    assert [each.status for each in await answers(batches, "j")] == [200, 422]
    assert [each.path for each in upstream.received[-2:]] == [
        "/files/out/content",
        "/files/err/content",
    ]
    upstream.enqueue(ok({"id": "j", "status": "CANCELLATION_REQUESTED"}))
    await batches.cancel("j")
    assert upstream.received[-1].path == "/batch/jobs/j/cancel"


async def test_c83_mistrals_form_finds_a_job_by_its_metadata(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "mistral")
    others = [{"id": f"j-{number}", "metadata": {"tollgate": 7}} for number in range(100)]
    upstream.enqueue(
        ok({"data": others}), ok({"data": [{"id": "j", "metadata": {"tollgate": NAME}}]})
    )
    assert await batches.find(NAME, since_s=CREATED_S, count=2) == "j"
    after = "created_after=2026-11-21T11%3A55%3A00%2B00%3A00"
    assert upstream.received[-1].path == f"/batch/jobs?page=1&page_size=100&{after}"
    upstream.enqueue(ok({"total": 0}))
    assert await batches.find(NAME, since_s=CREATED_S, count=2) is None


@pytest.mark.parametrize(
    ("form", "page"),
    [
        ("openai", {"data": [{"id": "b", "created_at": CREATED_S}], "has_more": True}),
        (
            "anthropic",
            {"data": [{"id": "m", "processing_status": "ended", **CREATED}], "has_more": True},
        ),
        ("mistral", {"data": [{"id": "j"}] * 100}),
        ("gemini", {"operations": [], "nextPageToken": "t"}),
    ],
)
async def test_c83_pages_that_lead_in_a_circle_end_as_a_failure(
    upstream: FakeUpstream, provider: OneProvider, form: BatchForm, page: Any
) -> None:
    batches = batches_of(provider, form)
    ids = ("0", "1") * (PAGES_MAX // 2)
    # Every second page names the same page as the next.
    upstream.enqueue(*(Script.json(200, _renamed(page, each)) for each in ids))
    with pytest.raises(UpstreamError):
        await batches.find(NAME, since_s=CREATED_S, count=2)
    assert upstream.unplayed == 0


def _renamed(page: Any, suffix: str) -> Any:
    """Return a page whose ids and next page end in `suffix`."""
    if "nextPageToken" in page:
        return {**page, "nextPageToken": page["nextPageToken"] + suffix}
    return {**page, "data": [{**each, "id": each["id"] + suffix} for each in page["data"]]}


async def test_c83_anthropics_form_looks_into_no_more_batches_than_it_asked_for(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "anthropic")
    one = {"id": "m", "processing_status": "ended", "request_counts": {"succeeded": 2}, **CREATED}
    other = jsonl({"custom_id": "other-0", "result": {"type": "expired"}})
    upstream.enqueue(ok({"data": [one] * 101, "has_more": False}), *[other] * 101)
    assert await batches.find(NAME, since_s=CREATED_S, count=2) is None
    assert upstream.unplayed == 1


@pytest.mark.parametrize("form", ["openai", "anthropic", "mistral", "xai"])
async def test_c83_only_a_refusal_makes_it_certain_that_nothing_is_accepted(
    upstream: FakeUpstream, provider: OneProvider, form: BatchForm
) -> None:
    batches = batches_of(provider, form)
    path = "/messages" if form == "anthropic" else "/chat/completions"
    uploaded = [] if form == "anthropic" else [ok({"id": "file-1"})]
    upstream.enqueue(*uploaded, Script.json(400, {"error": {"message": "No."}}))
    with pytest.raises(NotAccepted):
        await batches.submit(NAME, requests(path), folder="jobs/")
    for unsure in (
        Script.json(500, {}),
        Script(before_headers="close"),
        ok({"id": 7}),
        Script.json(200, [], content_length="x"),
    ):
        upstream.enqueue(*uploaded, unsure)
        with pytest.raises(UpstreamError):
            await batches.submit(NAME, requests(path), folder="jobs/")


async def test_c83_a_file_that_cannot_be_uploaded_is_no_batch(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "openai")
    for failed in (Script.json(500, {}), Script(before_headers="close")):
        upstream.enqueue(failed)
        with pytest.raises(NotAccepted):
            await batches.submit(NAME, requests("/chat/completions"), folder="jobs/")
    provider.secrets.secret = None
    forms: tuple[tuple[BatchForm, str], ...] = (
        ("openai", "/chat/completions"),
        ("anthropic", "/messages"),
        ("mistral", "/chat/completions"),
        ("xai", "/chat/completions"),
        ("gemini", "/v1beta/models/m:streamGenerateContent?alt=sse"),
    )
    for form, path in forms:
        with pytest.raises(NotAccepted):
            await batches_of(provider, form).submit(NAME, requests(path), folder="jobs/")


@pytest.mark.parametrize("form", ["openai", "anthropic"])
async def test_c83_results_that_cannot_be_read_are_a_failure_of_the_provider(
    upstream: FakeUpstream, provider: OneProvider, form: BatchForm
) -> None:
    batches = batches_of(provider, form)
    found = [] if form == "anthropic" else [ok({"id": "b", "output_file_id": "out"})]
    broken: tuple[Any, ...] = (
        Script.json(404, {}),
        Script(chunks=[b"no JSON\n"]),
        Script(chunks=[b'{"custom_id": "1"'], end="close"),
        Script(chunks=[b"[]"]),
    )
    for script in broken:
        upstream.enqueue(*found, script)
        with pytest.raises(UpstreamError):
            await answers(batches, "b")
    upstream.enqueue(Script.json(409, {}), Script.json(503, {}))
    await batches.cancel("b")
    with pytest.raises(UpstreamError):
        await batches.cancel("b")


@pytest.mark.parametrize("form", ["openai", "anthropic", "mistral", "xai", "gemini"])
async def test_c83_a_key_does_not_follow_a_redirect_to_another_host(
    upstream: FakeUpstream, provider: OneProvider, form: BatchForm
) -> None:
    batches = batches_of(provider, form)
    elsewhere = Script(status=307, headers={"location": f"{upstream.url}.example/"}, chunks=[])
    path = {"anthropic": "/messages", "gemini": "/v1beta/models/m:streamGenerateContent"}
    upstream.enqueue(elsewhere, elsewhere, elsewhere)
    with pytest.raises(NotAccepted):
        await batches.submit(NAME, requests(path.get(form, "/chat/completions")), folder="jobs/")
    for called in batches.get_state("b"), answers(batches, "b"):
        with pytest.raises(UpstreamError):
            await called
    assert upstream.unplayed == 0
