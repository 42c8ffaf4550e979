"""Stores that have the content of one generation."""

import json
from typing import Any

from tests.unit.web.routes import GENERATION_ID
from tollgate.core.records.audit import Actor
from tollgate.core.records.subjects import LegalHold, PrivacySubject
from tollgate.stores.ports.people import Session

CONTENT = {"id": GENERATION_ID, "request": {"model": "kept words"}, "choices": []}


class KeptContents:
    """A content log that holds the content of one workspace's generation."""

    def __init__(self, workspace_id: str, generation_id: str) -> None:
        self._place = (workspace_id, generation_id)

    async def keep(self, *_: Any, **__: Any) -> None:
        raise AssertionError("the api keeps no content")

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        found = (workspace_id, generation_id) == self._place
        return json.dumps(CONTENT).encode() if found else None


class KeptResponse:
    """A store of responses that holds the one of one workspace's generation."""

    def __init__(self, workspace_id: str, generation_id: str) -> None:
        self._place = (workspace_id, generation_id)
        self.deleted = False

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        found = (workspace_id, generation_id) == self._place and not self.deleted
        return b'{"response":{"output":[]},"input":[]}' if found else None

    async def delete(self, workspace_id: str, generation_id: str, *, by: Actor) -> bool:
        found = await self.get(workspace_id, generation_id) is not None
        self.deleted = self.deleted or found
        return found


def kept_session(session_id: str, member_id: str) -> Session:
    """A session that ends in the year 2286."""
    return Session(
        id=session_id,
        member_id=member_id,
        opened_s=0,
        renewed_s=0,
        expires_s=9_999_999_999,
        renewable=True,
    )


def kept_hold() -> LegalHold:
    """A legal hold on the end user `eve` of `acme`."""
    eve = PrivacySubject(workspace_id="acme", kind="user", id="eve")
    return LegalHold(subject=eve, reason="case", placed_s=0, placed_by="k", by_operator=False)
