"""`tollgate subjects` against a running gateway: archives, holds and requests of erasures.

Keeps C99.
"""

import json
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import openai

from tests.functional.command_line import printed, run, server
from tests.local_server import LocalServer

__all__ = ["server"]

CY = "cy@acme.example"


def archive_of(server: LocalServer, path: Path, *subject: str) -> dict[str, Any]:
    """Export a subject; return the lines of each file after comparing them with the manifest."""
    printed(server, "subjects", "export", *subject, "--to", str(path))
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert {it["name"] for it in manifest["files"]} == {*archive.namelist()} - {"manifest.json"}
        assert manifest["subject"] == {"kind": subject[0], "id": subject[1]}
        contents = {}
        for file in manifest["files"]:
            content = archive.read(file["name"])
            assert (sha256(content).hexdigest(), len(content)) == (file["sha256"], file["bytes"])
            contents[file["name"]] = content
            if file["lines"] is not None:
                lines = [json.loads(line) for line in content.splitlines()]
                assert len(lines) == file["lines"]
                contents[file["name"]] = lines
    return contents


def test_c99_an_archive_has_what_is_stored_of_a_person_and_nobody_else(
    server: LocalServer, tmp_path: Path
) -> None:
    printed(server, "members", "create", CY)
    settings = ("--member", CY, "--content-days", "7", "--response-days", "7")
    secret = printed(server, "keys", "create", "cy", *settings).strip()
    with openai.OpenAI(base_url=server.base_url, api_key=secret, max_retries=0) as client:
        file = client.files.create(file=("a.txt", b"Hello"), purpose="user_data")
        client.chat.completions.create(
            model="test/echo", messages=[{"role": "user", "content": "of cy"}], user="end-user"
        )
        response = client.responses.create(model="test/echo", input="stored words")

    found = archive_of(server, tmp_path / "cy.zip", "member", CY)
    assert len(found["generations.jsonl"]) == 2
    assert "of cy" in str(found["contents.jsonl"])
    assert [it["id"] for it in found["responses.jsonl"]] == [response.id]
    assert found[f"files/{file.id}"] == b"Hello"
    assert [it["id"] for it in found["members.jsonl"]] == [CY]
    assert [it["name"] for it in found["keys.jsonl"]] == ["cy"]
    assert {it["action"] for it in found["audit-about.jsonl"]} == {"member.create"}
    of_user = archive_of(server, tmp_path / "user.zip", "user", "end-user")
    assert [it["external_user"] for it in of_user["generations.jsonl"]] == ["end-user"]
    assert set(of_user) == {"generations.jsonl", "contents.jsonl", "responses.jsonl"}
    whole = archive_of(server, tmp_path / "all.zip", "workspace", "default")
    assert {"cy", "local inference"} <= {it["name"] for it in whole["keys.jsonl"]}

    again = run(server, "subjects", "export", "user", "x", "--to", str(tmp_path / "cy.zip"))
    assert (again.returncode, "exists already" in again.stderr) == (1, True)
    bad = run(server, "subjects", "export", "member", "nobody", "--to", str(tmp_path / "no.zip"))
    assert (bad.returncode, (tmp_path / "no.zip").exists()) == (1, False)


def test_c99_holds_and_erasures_are_placed_listed_and_released(server: LocalServer) -> None:
    reason = ("--reason", "case 7")
    placed = json.loads(printed(server, "subjects", "hold", "user", "eve", *reason, "--json"))
    [row] = printed(server, "subjects", "holds").splitlines()[1:]
    assert row.split("\t")[:4] == [placed["id"], "user", "eve", "case 7"]
    refused = run(server, "subjects", "erase", "user", "eve")
    assert "on legal hold" in refused.stderr
    told = printed(server, "subjects", "release", placed["id"])
    assert told == f"The hold {placed['id']} is released.\n"
    printed(server, "subjects", "erase", "user", "eve", "--workspace", "default")
    [erasure] = json.loads(printed(server, "subjects", "erasures", "--json"))
    assert (erasure["subject"], erasure["finished_at"]) == ("eve", None)
