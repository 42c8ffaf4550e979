"""Documents through the deployed path: the reader function, its batches, its crashes.

Keeps C72, C65.
"""

import base64
import io
from collections.abc import AsyncIterator
from typing import Any, Final

import openai
import pytest
import pytest_asyncio

from tests import documents
from tests.deployment import Deployment, Workspace
from tests.deployment_with_bucket import deployed_with_bucket
from tests.upstream import Script
from tests.upstream.answers import Answer, in_chat
from tollgate.stores.documents.invoked_reader import INLINE_BYTES_MAX

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL: Final = "alpha/one"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reading(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    async with deployed_with_bucket(tmp_path_factory.mktemp("documents")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def tenant(reading: Deployment) -> AsyncIterator[Workspace]:
    """A workspace; afterwards no rule is broken, and no call to AWS was refused."""
    yield await reading.workspace()
    assert reading.emulator.take_violations() == []
    assert reading.proxy.take_refusals() == []


async def ask(reading: Deployment, tenant: Workspace, content: bytes) -> Any:
    """Ask by OpenAI's SDK; return the parts that the provider got."""
    encoded = base64.b64encode(content).decode()
    file = {"filename": "report.pdf", "file_data": f"data:application/pdf;base64,{encoded}"}
    return await ask_with(reading, tenant, file)


async def ask_with(reading: Deployment, tenant: Workspace, file: Any, *, model: str = MODEL) -> Any:
    reading.upstreams.alpha.reset()
    reading.upstreams.alpha.enqueue(Script(chunks=in_chat(Answer(words=["Read."]))))
    async with reading.client(tenant.inference) as client:
        await client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": [{"type": "file", "file": file}]}],
            max_tokens=9,
        )
    (request,) = reading.upstreams.alpha.received
    return request.json["messages"][0]["content"]


async def spent(reading: Deployment, tenant: Workspace) -> list[Any]:
    answer = await reading.ask("GET", "/v1/generations", tenant.management)
    (made,) = answer.json["data"]
    lines = made["cost_lines"]
    return [(line["quantity"], line["cost"]) for line in lines if line["item"] == "pdf_page"]


async def test_c72_the_reader_function_reads_for_a_model_that_does_not(
    reading: Deployment, tenant: Workspace
) -> None:
    text = await ask(reading, tenant, documents.pdf(["Profits rose.", "Losses fell."]))
    assert text.endswith("Page 1:\nProfits rose.\n\nPage 2:\nLosses fell.\n")
    assert await spent(reading, tenant) == [(2, 0.0002)]


async def test_pages_come_in_batches_and_large_documents_by_the_bucket(
    reading: Deployment, tenant: Workspace
) -> None:
    invoked = len(reading.reader.invocations)
    unread = b"%" + b"x" * INLINE_BYTES_MAX + b"\nstartxref"
    content = documents.noisy_pdf(20).replace(b"startxref", unread)
    asked = {"filename": "long.pdf", "purpose": "user_data", "bytes": len(content)}
    made = await reading.ask("POST", "/v1/files/presigned", tenant.inference, body=asked)
    url, headers = made.json["url"], made.json["headers"]
    async with reading.http.put(url, headers=headers, data=io.BytesIO(content)) as sent:
        assert sent.status == 200
    parts = await ask_with(reading, tenant, {"file_id": made.json["id"]}, model="alpha/sees")
    assert [part["type"] for part in parts].count("image_url") == 20
    batches = reading.reader.invocations[invoked:]
    assert len(batches) >= 2
    assert batches[0].event["first"] == 1
    (key,) = {batch.event["key"] for batch in batches}
    assert key.startswith("reading/")
    assert await reading.stores.objects.get(key) is None


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (documents.encrypted_pdf(), "document_unreadable"),
        (documents.pdf(["p"] * 101), "document_too_large"),
    ],
    ids=["locked", "pages"],
)
async def test_a_document_that_cannot_be_read_is_a_400(
    reading: Deployment, tenant: Workspace, content: bytes, code: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await ask(reading, tenant, content)
    assert refused.value.code == code
    assert reading.upstreams.alpha.received == []


async def test_a_reader_that_is_killed_costs_one_request(
    reading: Deployment, tenant: Workspace
) -> None:
    # The deadline ends the first, which takes two seconds; a new environment serves the second.
    reading.reader.timeout_once(0.5)
    with pytest.raises(openai.BadRequestError) as refused:
        await ask(reading, tenant, documents.bomb_pdf(300_000_000))
    assert refused.value.code == "document_too_large"
    assert "takes too long" in refused.value.message
    assert "quick" in await ask(reading, tenant, documents.pdf(["quick"]))


async def test_a_pdf_for_a_model_that_reads_it_invokes_nothing(
    reading: Deployment, tenant: Workspace
) -> None:
    invoked = len(reading.reader.invocations)
    reading.upstreams.alpha.reset()
    reading.upstreams.alpha.enqueue(Script.json(500, {}))
    content = base64.b64encode(documents.pdf(["native"])).decode()
    file = {"file_data": f"data:application/pdf;base64,{content}"}
    body = {
        "model": "alpha/reads",
        "messages": [{"role": "user", "content": [{"type": "file", "file": file}]}],
    }
    await reading.ask("POST", "/v1/chat/completions", tenant.inference, body=body)
    assert len(reading.reader.invocations) == invoked
