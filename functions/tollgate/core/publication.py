"""Which catalog is live, and which keys try a candidate."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, Protocol

from msgspec import Struct

_SHARES: Final = 100


class Publication(Struct, frozen=True, kw_only=True):
    """What was published last: catalogs by their sha, `percent` of keys on the candidate.

    `revision` counts publications, `moved_s` is when this one was made. `previous` is the catalog
    that was live before this one; `commit` and `by` say where it came from and who did it.
    """

    live: str
    revision: int
    moved_s: int
    by: str
    commit: str | None = None
    previous: str | None = None
    candidate: str | None = None
    percent: int = 0

    def sha_for(self, key_id: str | None) -> str:
        """The catalog that a key is served by; whoever has no key gets the live one.

        A key keeps its place while the percentage grows, and another candidate draws other keys.
        """
        if self.candidate is None or key_id is None:
            return self.live
        digest = blake2b(f"{self.candidate}\0{key_id}".encode(), digest_size=8).digest()
        share = int.from_bytes(digest, "big") * _SHARES >> 64
        return self.candidate if share < self.percent else self.live


class Signature(Struct, frozen=True, kw_only=True):
    """Who publishes, when (Unix seconds), and from which commit, if that is known."""

    by: str
    at_s: int
    commit: str | None = None


def publish_to_all(before: Publication | None, sha: str, signature: Signature) -> Publication:
    """Every key on one catalog; a canary that runs ends."""
    previous = None
    if before is not None:
        previous = before.previous if before.live == sha else before.live
    return _signed(before, signature, live=sha, previous=previous)


def canaried(before: Publication, sha: str, percent: int, signature: Signature) -> Publication:
    """A share of the keys on a candidate; with 0 the canary ends."""
    candidate = sha if percent else None
    return _signed(
        before,
        signature,
        live=before.live,
        previous=before.previous,
        candidate=candidate,
        percent=percent,
    )


def _signed(
    before: Publication | None,
    signature: Signature,
    *,
    live: str,
    previous: str | None,
    candidate: str | None = None,
    percent: int = 0,
) -> Publication:
    return Publication(
        live=live,
        previous=previous,
        candidate=candidate,
        percent=percent,
        revision=1 if before is None else before.revision + 1,
        moved_s=signature.at_s,
        by=signature.by,
        commit=signature.commit,
    )


class PublishedCatalogs(Protocol):
    """What was published; LedgerError(service_unavailable) if it cannot be reached."""

    async def publication(self) -> Publication | None:
        """What is published, read at most five seconds ago; None if nothing ever was."""

    async def catalog(self, sha: str) -> bytes:
        """The compiled catalog of a sha; LedgerError too if it is missing or damaged."""


class Publications(PublishedCatalogs, Protocol):
    """Where catalogs are published; LedgerError(service_unavailable) if it cannot be reached."""

    async def keep(self, content: bytes) -> str:
        """Keep a compiled catalog under its sha, which is returned."""

    async def move(self, publication: Publication) -> None:
        """Make a publication the one that holds; its revision is one more than that before.

        RequestError(idempotency_conflict) if somebody else was faster.
        """

    async def history(self) -> Sequence[Publication]:
        """The latest publications, the last one first."""
