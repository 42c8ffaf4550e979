"""Published catalogs: immutable objects named by their sha, and a pointer item that names the live
one.

In addition, one item per revision is stored forever.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import (
    ConditionFailed,
    TransactionCancelled,
    refusing_when_unavailable,
)
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, LedgerError, RequestError
from tollgate.core.records.audit import AuditEntry
from tollgate.core.routing.canary import Look, Terms
from tollgate.core.routing.publication import Publication
from tollgate.stores.aws.decoding import (
    decode_items,
    read_number,
    read_optional_text,
    read_text,
    reads_an_item,
)
from tollgate.stores.aws.expressions import IF_ABSENT, LATER_LOOK, SAME_REVISION
from tollgate.stores.aws.record_items import CanaryLookItem, PublicationItem
from tollgate.stores.aws.tables import (
    CANARY_LOOK_KEY,
    PUBLICATION_KEY,
    get_item,
    publication_row_key,
    query_rows,
)

_HISTORY_PAGE_MAX: Final = 100
_READ_FOR_S: Final = 5.0
_TERMS: Final = msgspec.json.Decoder(Terms)
_LOOKS: Final = msgspec.json.Decoder(Look)


class PublicationStore:
    """Implements `routing.publication.Publications`; authentication also reads the pointer."""

    def __init__(
        self, client: AwsCaller, table: str, objects: ObjectStore | None, *, clock: Clock
    ) -> None:
        self._client = client
        self._table = table
        self._objects = objects
        self._clock = clock
        self._pointer: Item | None = None
        self._read_s = float("-inf")

    def note(self, item: Item | None) -> None:
        """Remember the pointer that authentication has read together with a key.

        A corrupt pointer must not fail the authentication, so it is decoded later.
        """
        self._pointer = item
        self._read_s = self._clock.monotonic_s()

    async def publication(self) -> Publication | None:
        """Return the publication, at most five seconds old; None if nothing has been published."""
        if self._clock.monotonic_s() - self._read_s >= _READ_FOR_S:
            with refusing_when_unavailable():
                self.note(await get_item(self._client, self._table, PUBLICATION_KEY))
        if self._pointer is None:
            return None
        with refusing_when_unavailable():
            return _read_publication(self._pointer)

    async def catalog(self, sha: str) -> bytes:
        """Return the compiled catalog with this sha.

        Raises LedgerError(service_unavailable) if the catalog is missing or corrupt.
        """
        content = None
        if self._objects is not None:
            with refusing_when_unavailable():
                content = await self._objects.get(_object(sha))
        if content is None or sha256(content).hexdigest() != sha:
            problem = "missing" if content is None else "damaged"
            raise LedgerError(ErrorCode.SERVICE_UNAVAILABLE, f"Catalog {sha} is {problem}.")
        return content

    async def keep(self, content: bytes) -> str:
        """Store a compiled catalog and return its sha."""
        if self._objects is None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "This gateway has no bucket to publish to."
            )
        sha = sha256(content).hexdigest()
        with refusing_when_unavailable():
            await self._objects.put(_object(sha), content)
        return sha

    async def move(self, publication: Publication, entry: AuditEntry) -> None:
        """Make a publication live; raise RequestError if another publication was written first.

        `entry` is written to the audit log in the same transaction.
        """
        # Imported here, because functions that serve requests only read publications.
        from tollgate.stores.records.audit_log import entry_puts

        item = _item(publication)
        pointer: dict[str, object] = {
            "TableName": self._table,
            "Item": {**PUBLICATION_KEY, **item},
            "ConditionExpression": IF_ABSENT,
        }
        if publication.revision > 1:
            pointer["ConditionExpression"] = SAME_REVISION
            pointer["ExpressionAttributeValues"] = {":rev": number(publication.revision - 1)}
        row = {
            "TableName": self._table,
            "Item": {**publication_row_key(publication.revision), **item},
            "ConditionExpression": IF_ABSENT,
        }
        try:
            with refusing_when_unavailable():
                await self._client.call(
                    "TransactWriteItems",
                    {
                        # The token makes the call idempotent, so the client may retry it after a
                        # lost reply.
                        "ClientRequestToken": entry.id,
                        "TransactItems": [
                            {"Put": pointer},
                            {"Put": row},
                            *entry_puts(self._table, entry),
                        ],
                    },
                )
        except TransactionCancelled as cancelled:
            raise RequestError(
                ErrorCode.IDEMPOTENCY_CONFLICT,
                "Another publication came first; check what is live now, then repeat.",
            ) from cancelled

    async def history(self) -> Sequence[Publication]:
        """Return the latest publications, newest first."""
        with refusing_when_unavailable():
            rows, _ = await query_rows(
                self._client,
                self._table,
                read_text(PUBLICATION_KEY, PublicationItem.PARTITION),
                "R#",
                limit=_HISTORY_PAGE_MAX,
                backwards=True,
            )
        publications, _ = decode_items(_read_publication, rows)
        return publications

    async def look(self) -> Look | None:
        """Return the latest look at a candidate's traffic; None before the first."""
        with refusing_when_unavailable():
            item = await get_item(self._client, self._table, CANARY_LOOK_KEY)
            return None if item is None else _read_look(item)

    async def keep_look(self, look: Look) -> bool:
        """Store a look in place of an earlier one; return False if it is not later."""
        put = {
            "TableName": self._table,
            "Item": {
                **CANARY_LOOK_KEY,
                CanaryLookItem.REVISION: number(look.revision),
                CanaryLookItem.NUMBER: number(look.number),
                CanaryLookItem.LOOK: string(msgspec.json.encode(look).decode()),
            },
            "ConditionExpression": LATER_LOOK,
            "ExpressionAttributeValues": {
                ":rev": number(look.revision),
                ":num": number(look.number),
            },
        }
        try:
            with refusing_when_unavailable():
                await self._client.call("PutItem", put)
        except ConditionFailed:
            return False
        return True


def _object(sha: str) -> str:
    return f"catalogs/{sha}.json"


def _item(publication: Publication) -> Item:
    item: Item = {
        PublicationItem.LIVE: string(publication.live),
        PublicationItem.REVISION: number(publication.revision),
        PublicationItem.CREATED: number(publication.moved_s),
        PublicationItem.AUTHOR: string(publication.by),
        PublicationItem.PERCENT: number(publication.percent),
    }
    optional = {
        PublicationItem.COMMIT: publication.commit,
        PublicationItem.PREVIOUS: publication.previous,
        PublicationItem.CANDIDATE: publication.candidate,
        PublicationItem.TERMS: None
        if publication.terms is None
        else msgspec.json.encode(publication.terms).decode(),
        PublicationItem.WITHDRAWN: publication.withdrawn,
    }
    return item | {name: string(value) for name, value in optional.items() if value is not None}


@reads_an_item
def _read_publication(item: Item) -> Publication:
    terms = read_optional_text(item, PublicationItem.TERMS)
    return Publication(
        live=read_text(item, PublicationItem.LIVE),
        revision=read_number(item, PublicationItem.REVISION),
        moved_s=read_number(item, PublicationItem.CREATED),
        by=read_text(item, PublicationItem.AUTHOR),
        commit=read_optional_text(item, PublicationItem.COMMIT),
        previous=read_optional_text(item, PublicationItem.PREVIOUS),
        candidate=read_optional_text(item, PublicationItem.CANDIDATE),
        percent=read_number(item, PublicationItem.PERCENT),
        terms=None if terms is None else _TERMS.decode(terms),
        withdrawn=read_optional_text(item, PublicationItem.WITHDRAWN),
    )


@reads_an_item
def _read_look(item: Item) -> Look:
    return _LOOKS.decode(read_text(item, CanaryLookItem.LOOK))
