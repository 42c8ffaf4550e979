"""The batches of Gemini over a socket: an upload in two calls, an operation, a file of responses.

Keeps C83.
"""

import json

import pytest

from tests.functional.providers.one_provider import OneProvider
from tests.functional.providers.test_provider_batches import (
    CREATED_S,
    NAME,
    answers,
    batches_of,
    jsonl,
    ok,
    requests,
)
from tests.upstream import FakeUpstream, Script
from tollgate.providers.ports.provider_batches import BatchedRequest, NotAccepted


async def test_c83_geminis_form_uploads_a_file_in_two_calls_and_creates_an_operation(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "gemini")
    location = {"x-goog-upload-url": f"{upstream.url}/upload/v1beta/files?upload_id=u"}
    upstream.enqueue(
        Script(headers=location, chunks=[]),
        ok({"file": {"name": "files/f-1", "uri": "https://x"}}),
        ok({"name": "batches/b-1", "metadata": {"state": "BATCH_STATE_PENDING"}}),
    )
    path = "/v1beta/models/m:streamGenerateContent?alt=sse"
    body = {"contents": [{"parts": [{"text": "é"}]}]}
    sent = [BatchedRequest(custom_id=f"{NAME}-0", path=path, body=body, headers={})]
    assert await batches.submit(NAME, sent, folder="jobs/") == "batches/b-1"
    start, upload, create = upstream.received
    content = json.dumps(
        {"key": f"{NAME}-0", "request": body}, ensure_ascii=False, separators=(",", ":")
    )
    assert upload.body == content.encode() + b"\n"
    assert start.headers["x-goog-upload-header-content-length"] == str(len(upload.body))
    assert (start.headers["x-goog-upload-command"], start.path) == ("start", "/upload/v1beta/files")
    assert upload.path == "/upload/v1beta/files?upload_id=u"
    assert upload.headers["x-goog-upload-command"] == "upload, finalize"
    assert upload.headers["x-goog-api-key"] == create.headers["x-goog-api-key"] == "sk-secret"
    assert create.path == "/v1beta/models/m:batchGenerateContent"
    assert create.json == {"batch": {"displayName": NAME, "inputConfig": {"fileName": "files/f-1"}}}


async def test_c83_geminis_form_sends_no_key_to_another_host_and_no_other_work(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "gemini")
    chat = requests("/v1beta/models/m:streamGenerateContent?alt=sse")
    for location in ("https://elsewhere.example/upload", f"{upstream.url}.example/upload", ""):
        upstream.enqueue(Script(headers={"x-goog-upload-url": location}, chunks=[]))
        with pytest.raises(NotAccepted):
            await batches.submit(NAME, chat, folder="jobs/")
    assert len(upstream.received) == 3
    with pytest.raises(NotAccepted):
        await batches.submit(NAME, requests("/v1beta/models/m:countTokens"), folder="jobs/")
    assert len(upstream.received) == 3


async def test_c81_c83_geminis_form_submits_each_text_to_the_method_for_embeddings(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "gemini")
    location = Script(headers={"x-goog-upload-url": f"{upstream.url}/upload/u"}, chunks=[])
    text = {"model": "models/m", "content": {"parts": [{"text": "One."}]}}
    path = "/v1beta/models/m:batchEmbedContents"
    sent = BatchedRequest(custom_id=NAME, path=path, body={"requests": [text]}, headers={})
    upstream.enqueue(location, ok({"file": {"name": "files/f-1"}}), ok({"name": "batches/b-1"}))
    assert await batches.submit(NAME, [sent], folder="jobs/") == "batches/b-1"
    _, upload, create = upstream.received
    assert json.loads(upload.body) == {"key": NAME, "request": text}
    assert create.path == "/v1beta/models/m:asyncBatchEmbedContent"
    two = BatchedRequest(custom_id=NAME, path=path, body={"requests": [text, text]}, headers={})
    with pytest.raises(NotAccepted):
        await batches.submit(NAME, [two], folder="jobs/")
    assert len(upstream.received) == 3
    upstream.enqueue(
        ok({"name": "batches/b-1", "response": {"responsesFile": "files/r"}}),
        jsonl({"key": NAME, "response": {"embedding": {"values": [0.5, 1]}}}),
    )
    [answer] = await answers(batches, "batches/b-1")
    assert json.loads(answer.body) == {"embeddings": [{"values": [0.5, 1]}]}


async def test_c83_geminis_form_reads_responses_and_statuses_by_key(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "gemini")
    states = {
        "BATCH_STATE_PENDING": "running",
        "BATCH_STATE_RUNNING": "running",
        "BATCH_STATE_SUCCEEDED": "ended",
        "JOB_STATE_SUCCEEDED": "ended",
        "BATCH_STATE_CANCELLED": "ended",
        "BATCH_STATE_FAILED": "refused",
        "BATCH_STATE_EXPIRED": "refused",
    }
    for name, state in states.items():
        upstream.enqueue(ok({"name": "batches/b", "metadata": {"state": name}}))
        assert await batches.get_state("batches/b") == state
    response = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}
    done = {"name": "batches/b", "done": True, "response": {"responsesFile": "files/r"}}
    upstream.enqueue(
        ok(done),
        jsonl(
            {"key": "1", "response": response},
            {"key": "2", "error": {"code": 8, "message": "Too many."}},
            {"key": "3"},
        ),
    )
    first, second, third = await answers(batches, "batches/b")
    assert (first.status, json.loads(first.body)) == (200, response)
    assert (second.status, third.status) == (429, None)
    assert json.loads(second.body)["error"]["message"] == "Too many."
    assert upstream.received[-1].path == "/download/v1beta/files/r:download?alt=media"
    upstream.enqueue(ok({"name": "batches/b"}))
    assert await answers(batches, "batches/b") == []


async def test_c83_geminis_form_finds_an_operation_by_its_display_name(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    batches = batches_of(provider, "gemini")

    def page(name: str, **more: str) -> Script:
        operation = {"name": f"batches/{name}", "metadata": {"displayName": name}}
        return ok({"operations": [operation], **more})

    upstream.enqueue(page("other", nextPageToken="a/b"), page(NAME))
    assert await batches.find(NAME, since_s=CREATED_S, count=2) == f"batches/{NAME}"
    assert upstream.received[-1].path == "/v1beta/batches?pageSize=100&pageToken=a%2Fb"
    upstream.enqueue(page("other"))
    assert await batches.find(NAME, since_s=CREATED_S, count=2) is None
