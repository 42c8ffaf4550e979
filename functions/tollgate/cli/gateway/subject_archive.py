"""The archive of a subject: JSON lines and files, with a manifest of counts and hashes."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

from tollgate.cli.gateway.http import Api, Query, Refused
from tollgate.cli.tables import as_json
from tollgate.core.clock import SystemClock
from tollgate.core.records.subjects import PrivacySubjectKind

_PAGE: Final = 1_000
_FILES_PAGE: Final = 100
# Paths of the lists that the archive of a workspace contains.
_LISTS: Final = ("teams", "members", "keys", "webhooks", "credits/ledger")


class _Archive:
    """A zip file whose entries are counted and hashed as they are written."""

    def __init__(self, file: ZipFile) -> None:
        self._file = file
        self.entries: list[dict[str, object]] = []

    def add_lines(self, name: str, objects: Iterable[Any]) -> None:
        """Write objects as JSON lines, with one object in memory at a time."""
        lines = (f"{as_json(value, indent=None)}\n".encode() for value in objects)
        self.add(f"{name}.jsonl", lines, counts=True)

    def add(self, name: str, pieces: Iterable[bytes], *, counts: bool = False) -> None:
        """Write a file in pieces; with `counts`, each piece counts as a line."""
        digest, size, number = sha256(), 0, 0
        with self._file.open(name, "w", force_zip64=True) as entry:
            for piece in pieces:
                entry.write(piece)
                digest.update(piece)
                size, number = size + len(piece), number + 1
        self.entries.append(
            {
                "name": name,
                "lines": number if counts else None,
                "bytes": size,
                "sha256": digest.hexdigest(),
            }
        )


def write_archive(
    api: Api, kind: PrivacySubjectKind, subject_id: str, target: Path
) -> dict[str, Any]:
    """Write the archive of a subject, and return its manifest.

    If the archive cannot be completed, it is deleted.
    """
    made_at = datetime.fromtimestamp(int(SystemClock().now_s()), UTC)
    try:
        with ZipFile(target, "x", ZIP_DEFLATED) as file:
            archive = _Archive(file)
            # Lists are read day by day, and nothing is older than the workspace.
            since = api.get("/workspace")["data"]["created_at"]
            _write_generations(api, kind, subject_id, archive, since=since)
            if kind != "user":
                _write_files(api, kind, subject_id, archive)
                _write_people(api, kind, subject_id, archive, since=since)
            manifest = {
                "subject": {"kind": kind, "id": subject_id},
                "made_at": made_at.isoformat(),
                "files": archive.entries,
            }
            file.writestr("manifest.json", as_json(manifest))
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return manifest


def _write_generations(
    api: Api, kind: PrivacySubjectKind, subject_id: str, archive: _Archive, *, since: str
) -> None:
    """Write the generation records, then their stored contents and responses."""
    selection: Query = {
        "since": since,
        "limit": _PAGE,
        "user": subject_id if kind == "user" else None,
        "member": subject_id if kind == "member" else None,
    }
    ids: list[str] = []

    def records() -> Iterator[Any]:
        for record in api.pages("/generations", selection, "cursor"):
            ids.append(record["id"])
            yield record

    archive.add_lines("generations", records())
    contents = (_find(api, "/generation/content", {"id": id_}) for id_ in ids)
    archive.add_lines("contents", (reply["data"] for reply in contents if reply is not None))
    paths = (f"/responses/resp_{id_.removeprefix('gen-')}" for id_ in ids)
    responses = (_find(api, path, {}) for path in paths)
    archive.add_lines("responses", (reply for reply in responses if reply is not None))


def _write_files(api: Api, kind: PrivacySubjectKind, subject_id: str, archive: _Archive) -> None:
    """Write the list of uploaded files, and their contents."""
    files = list(_all_files(api, None if kind == "workspace" else subject_id))
    archive.add_lines("files", files)
    for file in files:
        archive.add(f"files/{file['id']}", api.download(f"/files/{file['id']}/content"))


def _write_people(
    api: Api, kind: PrivacySubjectKind, subject_id: str, archive: _Archive, *, since: str
) -> None:
    """Write people, keys, sessions and audit log entries."""
    logged: Query = {"since": since, "limit": _PAGE}
    if kind == "member":
        archive.add_lines("members", [api.get(f"/members/{subject_id}")["data"]])
        sessions = api.pages(f"/members/{subject_id}/sessions", {}, "cursor")
        archive.add_lines("sessions", sessions)
        keys = api.pages("/keys", {}, "cursor")
        archive.add_lines("keys", (key for key in keys if key["member_id"] == subject_id))
        for name, field in (("audit-by", "actor"), ("audit-about", "target")):
            entries = api.pages("/audit", {**logged, field: subject_id}, "cursor")
            archive.add_lines(name, entries)
        return
    archive.add_lines("workspace", [api.get("/workspace")["data"]])
    for name in _LISTS:
        archive.add_lines(name.replace("/", "-"), api.pages(f"/{name}", {}, "cursor"))
    archive.add_lines("audit", api.pages("/audit", logged, "cursor"))


def _all_files(api: Api, member_id: str | None) -> Iterator[Any]:
    after: str | None = None
    while True:
        page = _find(api, "/files", {"limit": _FILES_PAGE, "member": member_id, "after": after})
        if page is None:
            return
        yield from page["data"]
        after = page["last_id"]
        if not page["has_more"]:
            return


def _find(api: Api, path: str, query: Query) -> Any:
    """Return the reply to GET, or None for status 404."""
    try:
        return api.get(path, query)
    except Refused as refused:
        if refused.status != 404:
            raise
        return None
