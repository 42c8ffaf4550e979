"""Protocol of the log of access: reads of content, refused calls and failed sign-ins."""

from typing import Literal, Protocol

from tollgate.core.records.audit import Actor

ReadContent = Literal["content", "response", "file"]
Denial = Literal["call.refused", "sign_in.refused"]


class AccessLog(Protocol):
    """Adds entries of access to the audit log, each at most once an hour."""

    async def note_read(self, kind: ReadContent, target: str, *, by: Actor) -> None:
        """Record that a caller reads an object of its workspace.

        Raise LedgerError if the entry cannot be written; the caller then must not see the object.
        """

    async def note_refusal(self, refusal: Denial, target: str, code: str, *, by: Actor) -> None:
        """Record a refused call of a route, without an error if the entry cannot be written."""
