"""Files through the deployed path, by the official SDK and curl, in a bucket.

Keeps C70.
"""

import asyncio
import hashlib
import io
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import openai
import pytest
import pytest_asyncio

from tests.deployment import PATIENCE_S, Deployment, Workspace
from tests.deployment_with_bucket import deployed_with_bucket

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Bytes of every value, which a gateway that takes bodies for text would break.
PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def keeping(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    """A deployment with a bucket."""
    async with deployed_with_bucket(tmp_path_factory.mktemp("keeping")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def tenant(keeping: Deployment) -> AsyncIterator[Workspace]:
    """A workspace; afterwards no rule is broken, and no call to AWS was refused."""
    yield await keeping.workspace()
    assert keeping.emulator.take_violations() == []
    assert keeping.proxy.take_refusals() == []


async def test_c7_c70_the_sdk_keeps_a_file(keeping: Deployment, tenant: Workspace) -> None:
    async with keeping.client(tenant.inference) as client, asyncio.timeout(PATIENCE_S):
        file = await client.files.create(file=("Größe.png", PNG), purpose="vision")
        assert (file.filename, file.bytes, file.status) == ("Größe.png", len(PNG), "processed")
        listed = [it async for it in client.files.list(purpose="vision", limit=1)]
        assert listed == [file]
        assert await client.files.retrieve(file.id) == file
        assert (await client.files.content(file.id)).content == PNG
        assert (await client.files.delete(file.id)).deleted
        for gone in (client.files.retrieve(file.id), client.files.content(file.id)):
            with pytest.raises(openai.NotFoundError):
                await gone


async def test_c70_40_mb_go_straight_to_the_bucket(keeping: Deployment, tenant: Workspace) -> None:
    content = b"%PDF-1.7\n" + bytes(40_000_000)
    asked = {"filename": "long.pdf", "purpose": "user_data", "bytes": len(content)}
    made = await keeping.ask("POST", "/v1/files/presigned", tenant.inference, body=asked)
    assert made.status == 200, made.body
    async with keeping.http.put(
        made.json["url"], headers=made.json["headers"], data=io.BytesIO(content)
    ) as sent:
        assert sent.status == 200, await sent.text()
    async with keeping.client(tenant.inference) as client, asyncio.timeout(PATIENCE_S):
        file = await client.files.retrieve(made.json["id"])
        assert (file.bytes, file.filename, file.status) == (len(content), "long.pdf", "processed")
        assert (await client.files.content(file.id)).content == content


async def test_c70_pages_of_the_sdk_have_every_file_once(
    keeping: Deployment, tenant: Workspace
) -> None:
    async with keeping.client(tenant.inference) as client, asyncio.timeout(PATIENCE_S):
        made = {
            (await client.files.create(file=(f"{n}.txt", b"text"), purpose="user_data")).id
            for n in range(5)
        }
        found = [it.id async for it in client.files.list(limit=2)]
        assert (len(found), set(found)) == (5, made)


async def test_c70_an_expiry_of_the_sdk_is_taken(keeping: Deployment, tenant: Workspace) -> None:
    async with keeping.client(tenant.inference) as client, asyncio.timeout(PATIENCE_S):
        file = await client.files.create(
            file=("a.jsonl", b'{"a": 1}\n'),
            purpose="batch",
            expires_after={"anchor": "created_at", "seconds": 7_200},
        )
        assert file.expires_at == file.created_at + 7_200


async def test_c70_a_refusal_of_a_file_reaches_the_sdk(
    keeping: Deployment, tenant: Workspace
) -> None:
    async with keeping.client(tenant.inference) as client, asyncio.timeout(PATIENCE_S):
        with pytest.raises(openai.BadRequestError) as refused:
            await client.files.create(file=("a.pdf", PNG), purpose="user_data")
        assert (refused.value.code, refused.value.param) == ("mime_mismatch", "file")


async def test_c70_curl_uploads_and_downloads(
    keeping: Deployment, tenant: Workspace, tmp_path: Path
) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl here")
    (tmp_path / "a.png").write_bytes(PNG)

    async def run(*arguments: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *(curl, "--silent", "--show-error", "--fail-with-body"),
            *("-H", f"Authorization: Bearer {tenant.inference.secret}", *arguments),
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 0, said
        return said

    url = f"{keeping.emulator.url}/v1/files"
    file = json.loads(await run("-F", "purpose=user_data", "-F", f"file=@{tmp_path}/a.png", url))
    assert (file["filename"], file["bytes"]) == ("a.png", len(PNG))
    assert await run("--location", f"{url}/{file['id']}/content") == PNG


async def test_c70_the_sdk_uploads_in_parts(
    keeping: Deployment, tenant: Workspace, tmp_path: Path
) -> None:
    content = b"%PDF-1.7\n" + os.urandom(2_500_000)
    (tmp_path / "a.pdf").write_bytes(content)
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    async with keeping.client(tenant.inference) as client, asyncio.timeout(PATIENCE_S):
        done = await client.uploads.upload_file_chunked(
            file=tmp_path / "a.pdf",
            mime_type="application/pdf",
            purpose="user_data",
            # The body limit of this deployment is a megabyte.
            part_size=900_000,
            md5=md5,
        )
        assert (done.status, done.bytes) == ("completed", len(content))
        assert done.file is not None
        assert await client.files.retrieve(done.file.id) == done.file
        assert (await client.files.content(done.file.id)).content == content
        begun = await client.uploads.create(
            bytes=9, filename="b.txt", mime_type="text/plain", purpose="user_data"
        )
        part = await client.uploads.parts.create(begun.id, data=b"some text")
        assert (part.object, part.upload_id) == ("upload.part", begun.id)
        with pytest.raises(openai.BadRequestError) as refused:
            await client.uploads.complete(begun.id, part_ids=[part.id], md5="0" * 32)
        assert refused.value.param == "md5"
        cancelled = await client.uploads.cancel(begun.id)
        assert (cancelled.status, cancelled.file) == ("cancelled", None)
        with pytest.raises(openai.NotFoundError):
            await client.uploads.complete(begun.id, part_ids=[part.id])
