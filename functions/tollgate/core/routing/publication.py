"""The published catalogs: the live one, and a candidate that serves a share of the keys."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, Protocol

from msgspec import Struct

from tollgate.core.records.audit import AuditEntry
from tollgate.core.routing.canary import Look, Terms

_SHARES: Final = 100


class Publication(Struct, frozen=True, kw_only=True):
    """The SHA-256 hashes of the published catalogs: the live one and a candidate."""

    live: str
    revision: int
    """The number of publications so far, including this one."""
    moved_s: int
    """The Unix second of this publication."""
    by: str
    """The name of the publisher."""
    commit: str | None = None
    """The commit that the catalog was built from, if known."""
    previous: str | None = None
    """The catalog that was live before `live`."""
    candidate: str | None = None
    percent: int = 0
    """The percentage of keys that the candidate serves."""
    terms: Terms | None = None
    """The terms that the candidate must keep; None if only people end its canary."""
    withdrawn: str | None = None
    """The term whose breach by the previous candidate caused this publication, if one did."""

    def sha_for(self, key_id: str | None) -> str:
        """Return the sha of the catalog that serves a key; callers without a key get the live
        catalog.

        A key that gets the candidate keeps it when the percentage grows. Each candidate is served
        to a different set of keys.
        """
        if self.candidate is None or key_id is None:
            return self.live
        digest = blake2b(f"{self.candidate}\0{key_id}".encode(), digest_size=8).digest()
        share = int.from_bytes(digest, "big") * _SHARES >> 64
        return self.candidate if share < self.percent else self.live


class Signature(Struct, frozen=True, kw_only=True):
    """The publisher, the Unix second of publication, and the commit, if it is known."""

    by: str
    at_s: int
    commit: str | None = None


def publish_to_all(before: Publication | None, sha: str, signature: Signature) -> Publication:
    """Return a publication in which one catalog serves all keys, which ends a canary."""
    previous = None
    if before is not None:
        previous = before.previous if before.live == sha else before.live
    return _signed(before, signature, live=sha, previous=previous)


def publish_canary(
    before: Publication,
    sha: str,
    percent: int,
    signature: Signature,
    *,
    terms: Terms | None = None,
) -> Publication:
    """Return a publication in which a candidate serves `percent` of the keys; 0 ends a canary."""
    candidate = sha if percent else None
    return _signed(
        before,
        signature,
        live=before.live,
        previous=before.previous,
        candidate=candidate,
        percent=percent,
        terms=terms,
    )


def withdraw_canary(before: Publication, reason: str, signature: Signature) -> Publication:
    """Return the publication that ends a canary which broke a term; `live` stays live."""
    return _signed(before, signature, live=before.live, previous=before.previous, withdrawn=reason)


def _signed(
    before: Publication | None,
    signature: Signature,
    *,
    live: str,
    previous: str | None,
    candidate: str | None = None,
    percent: int = 0,
    terms: Terms | None = None,
    withdrawn: str | None = None,
) -> Publication:
    return Publication(
        live=live,
        previous=previous,
        candidate=candidate,
        percent=percent,
        terms=terms,
        withdrawn=withdrawn,
        revision=1 if before is None else before.revision + 1,
        moved_s=signature.at_s,
        by=signature.by,
        commit=signature.commit,
    )


class PublishedCatalogs(Protocol):
    """Reads published catalogs; raises LedgerError(service_unavailable) if the store is down."""

    async def publication(self) -> Publication | None:
        """Return the latest publication, at most five seconds old; None if nothing is published."""

    async def catalog(self, sha: str) -> bytes:
        """Return the compiled catalog with this sha; raise LedgerError if it is missing
        or corrupt.
        """


class Publications(PublishedCatalogs, Protocol):
    """Publishes catalogs; raises LedgerError(service_unavailable) if the store is unavailable."""

    async def keep(self, content: bytes) -> str:
        """Store a compiled catalog under its sha, and return the sha."""

    async def move(self, publication: Publication, entry: AuditEntry) -> None:
        """Make a publication the latest one; its revision must follow that of the previous one.

        `entry` is written to the audit log in the same step.

        Raises RequestError(idempotency_conflict) if another publication was written first.
        """

    async def history(self) -> Sequence[Publication]:
        """Return the latest publications, newest first."""

    async def look(self) -> Look | None:
        """Return the latest look at a candidate's traffic; None before the first."""

    async def keep_look(self, look: Look) -> bool:
        """Store a look in place of an earlier one; return False if it is not later."""
