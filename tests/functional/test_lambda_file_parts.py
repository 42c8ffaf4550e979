"""Files that requests name by their ids, through the deployed path, by the official SDKs.

Keeps C11, C68, C70, C80.
"""

import asyncio
import base64
import io
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import openai
import pytest
import pytest_asyncio

from tests.deployment import PATIENCE_S, Deployment, Key, Workspace
from tests.deployment_with_bucket import deployed_with_bucket
from tests.upstream import Script
from tests.upstream.answers import Answer, in_chat

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL: Final = "alpha/reads"
PDF_BYTES: Final = 40_000_000
# Three copies as base64 and one as bytes, beside the process itself; the function has 1,024 MB.
MEMORY_MAX_MB: Final = 500


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def keeping(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    """A deployment with a bucket."""
    async with deployed_with_bucket(tmp_path_factory.mktemp("parts")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def tenant(keeping: Deployment) -> AsyncIterator[Workspace]:
    """A workspace; afterwards no rule is broken, and no call to AWS was refused."""
    yield await keeping.workspace()
    assert keeping.emulator.take_violations() == []
    assert keeping.proxy.take_refusals() == []


async def send_file(
    keeping: Deployment, tenant: Workspace, content: bytes, name: str = "long.pdf"
) -> str:
    """Announce a file and send its content to the bucket; nobody looks at it yet."""
    asked = {"filename": name, "purpose": "user_data", "bytes": len(content)}
    made = await keeping.ask("POST", "/v1/files/presigned", tenant.inference, body=asked)
    assert made.status == 200, made.body
    async with keeping.http.put(
        made.json["url"], headers=made.json["headers"], data=io.BytesIO(content)
    ) as sent:
        assert sent.status == 200, await sent.text()
    return str(made.json["id"])


def answers(keeping: Deployment, *words: str) -> None:
    keeping.upstreams.alpha.enqueue(
        *(Script(chunks=in_chat(Answer(words=[word]))) for word in words)
    )


def sent_file(keeping: Deployment, at: int = -1) -> tuple[str, bytes]:
    """The name and the content of the file in a request to the provider."""
    [message] = keeping.upstreams.alpha.received[at].json["messages"]
    file = next(part["file"] for part in message["content"] if part["type"] == "file")
    head, _, text = file["file_data"].partition(",")
    assert head == "data:application/pdf;base64"
    return file["filename"], base64.b64decode(text)


def peak_mb(keeping: Deployment) -> int:
    """The most memory that the streaming function has had, in megabytes."""
    [environment] = keeping.chat.environments
    status = Path(f"/proc/{environment.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


@pytest.mark.nightly
async def test_c11_c70_one_pdf_of_40_mb_serves_three_requests(
    keeping: Deployment, tenant: Workspace
) -> None:
    content = b"%PDF-1.7\n" + os.urandom(PDF_BYTES - 9)
    file_id = await send_file(keeping, tenant, content)
    answers(keeping, "One", "Two", "Three")
    part: Any = {"type": "file", "file": {"file_id": file_id}}
    ask: Any = {"type": "text", "text": "What is it about?"}
    async with keeping.client(tenant.inference) as client, asyncio.timeout(PATIENCE_S):
        whole = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": [ask, part]}]
        )
        assert whole.choices[0].message.content == "One"
        stream = await client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": [part, ask]}], stream=True
        )
        words = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        assert "".join(words) == "Two"
        response = await client.responses.create(
            model=MODEL,
            input=[
                {
                    "role": "user",
                    "content": [
                        {"type": "input_file", "file_id": file_id},
                        {"type": "input_text", "text": "And in short?"},
                    ],
                }
            ],
        )
        assert response.output_text == "Three"
    for at in (-3, -2, -1):
        assert sent_file(keeping, at) == ("long.pdf", content)
    keeping.upstreams.alpha.reset()
    assert peak_mb(keeping) <= MEMORY_MAX_MB
    # 9 tokens of the prompt and 3 of the answer, three times: files cost what is read of them.
    await keeping.assert_books_closed(tenant, 3 * (9 * 1_000 + 3 * 2_000))


async def test_c11_c70_c80_a_file_of_others_is_not_found_in_any_format(
    keeping: Deployment, tenant: Workspace
) -> None:
    stranger = await keeping.workspace()
    file_id = await send_file(keeping, stranger, b"%PDF-1.7 " + bytes(91))
    bodies: dict[str, Any] = {
        "/v1/chat/completions": {
            "messages": [{"role": "user", "content": [{"type": "file", "file_id": file_id}]}]
        },
        "/v1/responses": {
            "input": [{"role": "user", "content": [{"type": "input_file", "file_id": file_id}]}]
        },
        "/v1/messages": {
            "max_tokens": 9,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "document", "source": {"type": "file", "file_id": file_id}}
                    ],
                }
            ],
        },
    }
    for path, body in bodies.items():
        refused = await keeping.ask("POST", path, tenant.inference, body={"model": MODEL, **body})
        error = refused.json["error"]
        assert (refused.status, error["code"]) == (400, "file_not_found"), path
        assert error["param"].endswith("file_id")
    await keeping.assert_books_closed(tenant, 0)


async def test_c11_c70_what_was_not_announced_so_is_refused_where_it_is_named(
    keeping: Deployment, tenant: Workspace
) -> None:
    file_id = await send_file(keeping, tenant, b"\x89PNG\r\n\x1a\n" + bytes(92))
    part: Any = {"type": "file", "file": {"file_id": file_id}}
    async with keeping.client(tenant.inference) as client, asyncio.timeout(PATIENCE_S):
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(
                model=MODEL, messages=[{"role": "user", "content": [part]}]
            )
    assert refused.value.code == "mime_mismatch"
    assert refused.value.param == "messages[0].content[0].file.file_id"


async def test_c11_c80_a_deleted_file_is_not_found(keeping: Deployment, tenant: Workspace) -> None:
    file_id = await send_file(keeping, tenant, b"%PDF-1.7 " + bytes(91))
    answers(keeping, "One")
    part: Any = {"type": "input_file", "file_id": file_id}
    async with keeping.client(tenant.inference) as client, asyncio.timeout(PATIENCE_S):
        asked: Any = [{"role": "user", "content": [part]}]
        assert (await client.responses.create(model=MODEL, input=asked)).output_text == "One"
        await client.files.delete(file_id)
        with pytest.raises(openai.BadRequestError) as refused:
            await client.responses.create(model=MODEL, input=asked)
    assert refused.value.code == "file_not_found"


async def test_c70_c80_a_stored_response_has_the_id_and_later_turns_find_the_file(
    keeping: Deployment, tenant: Workspace
) -> None:
    content = b"%PDF-1.7 " + os.urandom(91)
    file_id = await send_file(keeping, tenant, content)
    settings = {"name": "stores", "response_days": 7}
    key = await keeping.ask("POST", "/v1/keys", tenant.management, body=settings)
    answers(keeping, "One", "Two")
    part: Any = {"type": "input_file", "file_id": file_id}
    async with (
        keeping.client(Key(id="", secret=key.json["key"])) as client,
        asyncio.timeout(PATIENCE_S),
    ):
        asked: Any = [{"role": "user", "content": [part]}]
        first = await client.responses.create(model=MODEL, input=asked)
        items = await client.responses.input_items.list(first.id)
        assert base64.b64encode(content).decode() not in items.model_dump_json()
        assert file_id in items.model_dump_json()
        await client.responses.create(model=MODEL, input="On", previous_response_id=first.id)
        messages = keeping.upstreams.alpha.received[-1].json["messages"]
        assert base64.b64encode(content).decode() in messages[0]["content"][0]["file"]["file_data"]
        await client.files.delete(file_id)
        with pytest.raises(openai.BadRequestError) as refused:
            await client.responses.create(model=MODEL, input="On", previous_response_id=first.id)
    assert refused.value.code == "file_not_found"


async def test_c68_c70_an_idempotency_key_knows_a_file_by_its_id(
    keeping: Deployment, tenant: Workspace
) -> None:
    ids = [await send_file(keeping, tenant, b"%PDF-1.7 " + bytes(91)) for _ in range(2)]
    answers(keeping, "One")

    async def ask(file_id: str) -> tuple[int, Any]:
        part = {"type": "file", "file_id": file_id}
        body = {"model": MODEL, "messages": [{"role": "user", "content": [part]}]}
        headers = {
            "authorization": f"Bearer {tenant.inference.secret}",
            "idempotency-key": "once",
        }
        url = f"{keeping.emulator.url}/v1/chat/completions"
        async with keeping.http.post(url, headers=headers, json=body) as said:
            return said.status, await said.json()

    assert (await ask(ids[0]))[0] == 200
    assert (await ask(ids[0]))[0] == 200
    assert (await ask(ids[1]))[0] == 422
    assert keeping.upstreams.alpha.unplayed == 0
