"""The routes of files, over the stores that a deployment has.

Keeps C70.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from tests.asgi import Exchange, request
from tests.contract.files import CAPS, file_store, upload_store
from tests.gateways import house
from tests.memory.workspaces import MemoryWorkspaceStore
from tests.references import published_schema
from tests.stores import TESTER, DynamoStores
from tests.unit.web.test_api_app import Api
from tollgate.aws.objects import FolderObjects
from tollgate.core.clock import DAY_S
from tollgate.core.files.stored import FileCaps
from tollgate.core.principal import KeyRole, Principal
from tollgate.stores.files.folder import FolderFiles
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings
from tollgate.stores.records.kept_answers import DynamoAnswerStore
from tollgate.web.files.file_upload import read_upload

PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(8)
PDF: Final = b"%PDF-1.7\n" + bytes(8)
CAPS_OF_TESTS: Final = replace(CAPS, file_bytes_max=900)


@dataclass
class Desk:
    """The api with a store of files, and keys of two workspaces."""

    api: Api
    secrets: dict[str, str]

    async def upload(
        self,
        content: bytes = b"some text",
        *,
        name: str | None = "notes.txt",
        stated: str | None = None,
        who: str = "acme inference",
        claim: str | None = None,
        **fields: str,
    ) -> Exchange:
        sent = {"purpose": "user_data", **fields}
        form = httpx2.Request(
            "POST",
            "http://gateway/v1/files",
            data={key: value for key, value in sent.items() if value},
            files={"file": (name, content, stated)},
        )
        headers = {
            "authorization": f"Bearer {self.secrets[who]}",
            "content-type": form.headers["content-type"],
        }
        if claim is not None:
            headers["idempotency-key"] = claim
        return await request(self.api.app, "POST", "/v1/files", headers=headers, body=form.read())

    async def part(
        self, upload_id: str, content: bytes, *, name: str = "data", who: str = "acme inference"
    ) -> Exchange:
        path = f"/v1/uploads/{upload_id}/parts"
        form = httpx2.Request("POST", f"http://gateway{path}", files={name: content})
        headers = {
            "authorization": f"Bearer {self.secrets[who]}",
            "content-type": form.headers["content-type"],
        }
        return await request(self.api.app, "POST", path, headers=headers, body=form.read())

    async def call(self, method: str, path: str = "", who: str = "acme inference") -> Exchange:
        return await self.api(method, f"/v1/files{path}", key=self.secrets[who])


@pytest.fixture
async def desk(dynamo: DynamoStores, tmp_path: Any) -> Desk:
    return await open_desk(dynamo, tmp_path, CAPS_OF_TESTS)


async def open_desk(dynamo: DynamoStores, folder: Any, caps: FileCaps) -> Desk:
    home = await house()
    changes = {
        "files": file_store(dynamo, FolderFiles(folder), caps),
        "uploads": upload_store(dynamo, FolderFiles(folder), caps),
        "answers": DynamoAnswerStore(
            dynamo.client, dynamo.tables.core, FolderObjects(folder), clock=dynamo.clock
        ),
    }
    roles: tuple[KeyRole, ...] = ("inference", "management", "read")
    secrets = {}
    for workspace in ("acme", "other"):
        for role in roles:
            new = NewKey(workspace_id=workspace, role=role, label=f"{workspace} {role}")
            made = await home.stores.keys.create(new, by=TESTER)
            secrets[f"{workspace} {role}"] = made.secret
    return Desk(Api(home, "", "", changes), secrets)


async def test_c70_replies_have_openais_shapes(desk: Desk) -> None:
    file = (await desk.upload()).json
    listed = (await desk.call("GET")).json
    gone = (await desk.call("DELETE", f"/{file['id']}")).json
    for name, shown in (("file", file), ("list", listed), ("delete", gone)):
        Draft202012Validator(published_schema(f"openai.files.{name}")).validate(shown)


async def test_c70_a_file_is_uploaded_shown_listed_downloaded_and_deleted(desk: Desk) -> None:
    made = await desk.upload(name="C:\\notes\\Größe.html", stated="text/html")
    assert made.status == 200, made.body
    file = made.json
    assert file["filename"] == "Größe.html"
    assert (file["bytes"], file["purpose"], file["status"]) == (9, "user_data", "processed")
    assert file["media_type"] == "text/html"
    assert "expires_at" not in file
    assert made.headers["cache-control"] == "private, max-age=0"
    assert {name: made.headers[name] for name in made.headers if name.startswith("x-files")} == {
        "x-files-used": "1",
        "x-files-limit": "40",
    }
    assert made.headers["x-storage-used-bytes"] == "9"
    assert made.headers["x-storage-limit-bytes"] == "4000"

    assert (await desk.call("GET", f"/{file['id']}")).json == file
    listed = (await desk.call("GET")).json
    assert (listed["data"], listed["has_more"]) == ([file], False)
    assert listed["first_id"] == listed["last_id"] == file["id"]

    content = await desk.call("GET", f"/{file['id']}/content")
    assert (content.status, content.body) == (200, b"some text")
    assert content.headers["content-type"].startswith("text/html")
    document = (await desk.api("GET", "/v1/openapi.json")).json
    described = document["paths"]["/v1/files/{file_id}/content"]["get"]["responses"]["200"]
    assert [*described["content"]] == ["*/*"]
    assert content.headers["content-disposition"].startswith("attachment; filename*=utf-8''Gr%C3")
    assert content.headers["x-content-type-options"] == "nosniff"

    gone = await desk.call("DELETE", f"/{file['id']}")
    assert gone.json == {"id": file["id"], "object": "file", "deleted": True}
    for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        reply = await desk.call(method, f"/{file['id']}{path}")
        assert (reply.status, reply.error["param"]) == (404, "file_id")


async def test_c70_a_list_is_paged(desk: Desk, dynamo: DynamoStores) -> None:
    made = []
    for purpose in ("user_data", "assistants", "user_data"):
        dynamo.clock.now += 1
        made.append((await desk.upload(purpose=purpose)).json["id"])
    first = (await desk.call("GET", "?limit=2")).json
    assert [it["id"] for it in first["data"]] == [made[2], made[1]]
    assert (first["has_more"], first["last_id"]) == (True, made[1])
    rest = (await desk.call("GET", f"?limit=2&after={made[1]}")).json
    assert ([it["id"] for it in rest["data"]], rest["has_more"]) == ([made[0]], False)
    oldest = (await desk.call("GET", "?order=asc&purpose=user_data")).json
    assert [it["id"] for it in oldest["data"]] == [made[0], made[2]]
    assert (await desk.call("GET", "?purpose=vision")).json["data"] == []
    for query, param in (
        ("limit=0", "limit"),
        ("limit=10001", "limit"),
        ("after=x", "after"),
        ("order=up", "order"),
        ("purpose=fine-tune", "purpose"),
    ):
        refused = await desk.call("GET", f"?{query}")
        assert (refused.status, refused.error["param"]) == (400, param)


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("GET", "/content"), ("DELETE", "")])
async def test_c70_a_file_of_another_workspace_is_like_one_that_is_not(
    desk: Desk, method: str, path: str
) -> None:
    file_id = (await desk.upload()).json["id"]
    theirs = await desk.call(method, f"/{file_id}{path}", "other management")
    unknown = await desk.call(method, f"/file-{'0' * 15}{path}", "other management")
    assert theirs.status == unknown.status == 404
    assert theirs.error["message"] == unknown.error["message"]
    assert (await desk.call("GET", f"/{file_id}")).status == 200


@pytest.mark.parametrize("who", ["acme inference", "acme management", "acme read"])
async def test_c70_files_are_for_keys_that_generate_or_manage(desk: Desk, who: str) -> None:
    file_id = (await desk.upload()).json["id"]
    replies = [
        await desk.call("GET", "", who),
        await desk.call("GET", f"/{file_id}", who),
        await desk.call("GET", f"/{file_id}/content", who),
        await desk.upload(who=who),
        await desk.call("DELETE", f"/{file_id}", who),
    ]
    may = who != "acme read"
    assert {it.status for it in replies} == ({200} if may else {403})


@pytest.mark.parametrize(
    ("content", "fields", "code", "param"),
    [
        (b"text", {"purpose": ""}, "invalid_request", "purpose"),
        (b"text", {"purpose": "fine-tune"}, "invalid_request", "purpose"),
        (b"text", {"color": "red"}, "invalid_request", "color"),
        (b"", {}, "invalid_request", "file"),
        (b"x" * 901, {}, "file_too_large", "file"),
        (b"\0\1\2", {"name": "a.bin"}, "unsupported_file_type", "file"),
        (PNG, {}, "mime_mismatch", "file"),
        (PNG, {"name": "a.pdf"}, "mime_mismatch", "file"),
        (PNG, {"name": "a.png", "stated": "image/jpeg"}, "mime_mismatch", "file"),
        (b"text", {"name": "a.png"}, "mime_mismatch", "file"),
        (PDF, {"name": "a.pdf", "purpose": "vision"}, "unsupported_file_type", "file"),
        (PNG, {"name": "a.png", "purpose": "batch"}, "unsupported_file_type", "file"),
        (
            b"text",
            {"expires_after[anchor]": "created_at"},
            "invalid_request",
            "expires_after.seconds",
        ),
        (
            b"text",
            {"expires_after[anchor]": "now", "expires_after[seconds]": "3600"},
            "invalid_request",
            "expires_after.anchor",
        ),
        (
            b"text",
            {"expires_after[anchor]": "created_at", "expires_after[seconds]": "3599"},
            "invalid_request",
            "expires_after.seconds",
        ),
    ],
)
async def test_c70_a_file_that_cannot_be_stored_says_why(
    desk: Desk, content: bytes, fields: dict[str, str], code: str, param: str
) -> None:
    refused = await desk.upload(content, **fields)
    assert (refused.error["code"], refused.error["param"]) == (code, param), refused.body
    assert refused.status == (413 if code == "file_too_large" else 400)
    assert (await desk.call("GET")).json["data"] == []


@pytest.mark.parametrize(
    ("content", "name", "stated", "found"),
    [
        (PNG, "a.png", None, "image/png"),
        (PNG, "a.png", "application/octet-stream", "image/png"),
        (PNG, "no extension", None, "image/png"),
        (PDF, "a.pdf", "application/pdf", "application/pdf"),
        (b'{"a": 1}\n', "a.jsonl", None, "application/jsonl"),
        (b"a,b\n", "a.csv", None, "text/csv"),
        (b"print()", "a.py", None, "text/x-python"),
        (b"text", "a.unknown", None, "text/plain"),
        # The head of a long text may end within a character.
        ("é".encode() * 440 + b"x", "a.txt", None, "text/plain"),
    ],
)
async def test_c70_the_type_is_that_of_the_content(
    desk: Desk,
    content: bytes,
    name: str,
    stated: str | None,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tollgate.web.files.file_upload.HEAD_BYTES", 65)
    made = await desk.upload(content, name=name, stated=stated)
    assert made.json["media_type"] == found, made.body


async def test_c70_a_file_expires(desk: Desk, dynamo: DynamoStores) -> None:
    fields = {"expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"}
    file = (await desk.upload(**fields)).json
    assert file["expires_at"] == file["created_at"] + 3600
    dynamo.clock.now += 3600
    assert (await desk.call("GET", f"/{file['id']}/content")).status == 404


async def test_c70_storage_that_is_full_is_402_with_its_own_codes(desk: Desk) -> None:
    for _ in range(3):
        assert (await desk.upload(b"x" * 900)).status == 200
    refused = await desk.upload(b"x" * 301)
    assert (refused.status, refused.error["code"]) == (402, "storage_quota_exceeded")
    assert refused.headers["x-should-retry"] == "false"
    for _ in range(27):
        assert (await desk.upload(b"x")).status == 200
    refused = await desk.upload(b"x")
    assert (refused.status, refused.error["code"]) == (402, "file_count_quota_exceeded")


async def test_c70_an_idempotency_key_stores_a_file_once(desk: Desk, dynamo: DynamoStores) -> None:
    first = await desk.upload(claim="once:1.a_-")
    again = await desk.upload(claim="once:1.a_-")
    assert again.json == first.json
    assert again.headers["x-idempotent-replay"] == "true"
    assert again.headers["x-files-used"] == "1"
    other = await desk.upload(b"another", claim="once:1.a_-")
    assert (other.status, other.error["code"]) == (422, "idempotency_conflict")
    # A key of its own has claims of its own.
    assert (await desk.upload(claim="once:1.a_-", who="acme management")).json != first.json
    for bad in ("", "a b", "ä", "x" * 256):
        refused = await desk.upload(claim=bad)
        assert (refused.status, refused.error["code"]) == (400, "invalid_request")
    dynamo.clock.now += 86_401
    assert (await desk.upload(claim="once:1.a_-")).json["id"] != first.json["id"]


async def test_c70_a_refused_upload_leaves_its_idempotency_key_free(desk: Desk) -> None:
    for _ in range(3):
        await desk.upload(b"x" * 900)
    assert (await desk.upload(b"x" * 900, claim="later")).status == 402
    listed = (await desk.call("GET")).json["data"]
    await desk.call("DELETE", f"/{listed[0]['id']}")
    assert (await desk.upload(b"x" * 900, claim="later")).status == 200


@pytest.mark.parametrize("body", [b"", b"{}", b"--x\r\n"])
@pytest.mark.parametrize("stated", ["application/json", "multipart/form-data; boundary=x"])
async def test_c70_a_body_that_is_no_form_is_400(desk: Desk, body: bytes, stated: str) -> None:
    headers = {"authorization": f"Bearer {desk.secrets['acme inference']}", "content-type": stated}
    reply = await request(desk.api.app, "POST", "/v1/files", headers=headers, body=body)
    assert (reply.status, reply.error["code"]) == (400, "invalid_request")


async def test_c70_a_host_without_a_place_for_files_says_so(desk: Desk) -> None:
    desk.api.changes["files"] = None
    reply = await desk.upload()
    assert (reply.status, reply.error["code"]) == (404, "not_found")
    assert "no bucket for files" in reply.error["message"]
    assert json.dumps(reply.json)


async def test_c70_an_idempotency_key_that_nothing_can_keep_is_refused(desk: Desk) -> None:
    desk.api.changes["answers"] = None
    refused = await desk.upload(claim="once")
    assert (refused.status, refused.error["code"]) == (400, "invalid_request")
    assert (await desk.call("GET")).json["data"] == []


def test_c70_a_claim_is_of_the_workspace_that_uploads() -> None:
    form = httpx2.Request(
        "POST",
        "http://gateway/v1/files",
        data={"purpose": "user_data"},
        files={"file": ("notes.txt", b"some text")},
    )
    claims = [
        read_upload(
            form.read(),
            form.headers["content-type"],
            Principal(workspace_id=workspace, key_id="k", role="inference", label=""),
            bytes_max=900,
        ).claim("once", "r")
        for workspace in ("acme", "other")
    ]
    assert [claim.workspace_id for claim in claims] == ["acme", "other"]


async def test_c70_files_expire_as_their_workspace_says_unless_their_upload_does(
    desk: Desk,
) -> None:
    home = desk.api.home
    workspaces = MemoryWorkspaceStore(home.stores.books, home.stores.clock)
    desk.api.changes["workspaces"] = workspaces
    assert await workspaces.create("acme", WorkspaceSettings(file_days=7), by=TESTER)
    kept = (await desk.upload(who="other inference")).json
    assert "expires_at" not in kept
    file = (await desk.upload()).json
    assert file["expires_at"] == file["created_at"] + 7 * DAY_S
    own = {"expires_after[anchor]": "created_at", "expires_after[seconds]": "3600"}
    file = (await desk.upload(**own)).json
    assert file["expires_at"] == file["created_at"] + 3_600
    asked = {"filename": "a.txt", "purpose": "user_data", "bytes": 4, "mime_type": "text/plain"}
    secret = desk.secrets["acme inference"]
    upload = (await desk.api("POST", "/v1/uploads", key=secret, content=asked)).json
    part = await desk.part(upload["id"], b"text")
    assert part.status == 200, part.body
    done = await desk.api(
        "POST",
        f"/v1/uploads/{upload['id']}/complete",
        key=secret,
        content={"part_ids": [part.json["id"]]},
    )
    assert done.json["file"]["expires_at"] == done.json["created_at"] + 7 * DAY_S


async def test_c70_a_part_is_a_file_of_a_form(desk: Desk) -> None:
    asked = {"filename": "a.txt", "purpose": "user_data", "bytes": 4, "mime_type": "text/plain"}
    secret = desk.secrets["acme inference"]
    upload = (await desk.api("POST", "/v1/uploads", key=secret, content=asked)).json
    for content, name in ((b"", "data"), (b"text", "file")):
        reply = await desk.part(upload["id"], content, name=name)
        assert (reply.status, reply.error["param"]) == (400, "data")
    unknown = await desk.part("upload_x", b"text")
    assert (unknown.status, unknown.error["param"]) == (404, "upload_id")
    too_large = await desk.api("POST", "/v1/uploads", key=secret, content={**asked, "bytes": 901})
    assert (too_large.status, too_large.error["code"]) == (413, "file_too_large")
