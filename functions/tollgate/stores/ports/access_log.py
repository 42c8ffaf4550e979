"""The protocol of the access log: reads of content, refused calls and failed sign-ins."""

from typing import Literal, Protocol

from tollgate.core.records.audit import Actor

ReadContent = Literal["content", "response", "file"]
Denial = Literal["call.refused", "sign_in.refused"]


class AccessLog(Protocol):
    """Adds accesses to the audit log, each at most once an hour."""

    async def note_read(self, kind: ReadContent, target: str, *, by: Actor) -> None:
        """Record that a caller reads an object of its workspace.

        Raises LedgerError if the entry cannot be written, in which case the caller must not see the
        object.
        """

    async def note_refusal(self, refusal: Denial, target: str, code: str, *, by: Actor) -> None:
        """Record that a call of a route was refused; do not raise if the entry cannot
        be written.
        """
