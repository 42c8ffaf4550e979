"""A client to DynamoDB whose network loses replies, delivers late, repeats itself and refuses.

The faults happen below the real client, which repeats and reads them as it does in production: a
refusal is the reply that DynamoDB sends. They are dealt, not drawn: each site where something is
written has a deck with every kind of fault in it, so a run that lasts until no fault is owed any
more has met them all.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pydantic_core import from_json, to_json
from typing_extensions import override

from tollgate.aws.aws_json import AwsJson
from tollgate.aws.failures import StoreUnavailable


class Killed(BaseException):
    """The process was killed at this point: nothing of it may run any more."""


# The single writes of the money path, by what only their update has, the more special one first.
UPDATE_SITES: Final = {
    "wallet hold": "SET av = av - :a, h.#h = :a",
    "wallet rest": "SET h.#h = av",
    "wallet settle": "sp = sp + :c",
    "wallet top-up": "SET av = av - :x, h.#h = :b",
    "session begin": "SET h = :h, cm = :a",
    "session hold": "cm = cm + :a",
    "session settle": "cm = cm - :d",
    "key hold": "SET h.#h = :a",
    "key settle": "us = us + :c",
    "key top-up": "SET h.#h = :b",
}
MONEY_SITES: Final = frozenset({"record", *UPDATE_SITES})
TRANSACTION_SITES: Final = frozenset({"entry", "move", "divide"})

_AT_ANY_SITE: Final = ("killed before", "killed after", "lost", "twice", "late")
# Refusals as DynamoDB names them: of a call, and as the reason why a transaction was cancelled.
_REFUSALS: Final = (
    "TransactionConflictException",
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
)
_CANCELLATIONS: Final = (
    "TransactionConflict",
    "ThrottlingError",
    "ProvisionedThroughputExceeded",
    "ItemCollectionSizeLimitExceeded",
    "ValidationError",
)
# Late deliveries come most often, because nothing else brings old writes among new ones.
_MORE_OF: Final = ("late", "late", "late", "lost", "twice")
_LATE_PARTS: Final = 4


def write_site(operation: str, payload: Mapping[str, object]) -> str | None:
    """Which write of money this is; None for everything else."""
    match operation:
        case "PutItem":
            return "record" if "z" in payload["Item"] else None  # type: ignore[operator]
        case "UpdateItem":
            update = str(payload["UpdateExpression"])
            return next((site for site, part in UPDATE_SITES.items() if part in update), None)
        case "TransactWriteItems":
            updates = str(payload)
            if "rv = :rv" in updates:
                return "divide"
            return ("entry" if "'G#" in updates else "move") if "gr = gr" in updates else None
        case _:
            return None


def faults_at(site: str) -> tuple[str, ...]:
    """Every kind of fault that the writes of a site can meet."""
    return _AT_ANY_SITE + (_CANCELLATIONS if site in TRANSACTION_SITES else _REFUSALS)


@dataclass
class Faults:
    """What goes wrong, and when; `hits` counts it by fault and site.

    - killed before, killed after: the write does not land, or does, and the caller is gone
    - lost: the write lands and the reply does not come
    - late: no reply, and the write lands up to `late_max_s` later
    - twice: the write lands twice before its reply comes, as something in between may do it
    - anything else: a refusal of that name, and nothing lands

    Every second write meets a fault until its site has met all; from then on a part `rate` does.
    A rate of 0 is a network without faults.
    """

    random: random.Random
    rate: float = 0.0
    late_max_s: float = 0.5
    hits: Counter[str] = field(default_factory=Counter)
    _late: set[asyncio.Task[None]] = field(default_factory=set)
    _late_count: int = 0
    _decks: dict[str, list[str]] = field(default_factory=dict)
    _writes: Counter[str] = field(default_factory=Counter)

    def next(self, site: str) -> str | None:
        """What happens to the next write of a site."""
        if self.rate == 0:
            return None
        self._writes[site] += 1
        owing = bool(self.owed([site]))
        if self._writes[site] % 2 if owing else self.random.random() >= self.rate:
            return None
        if not self._decks.get(site):
            more = _MORE_OF if site in self._decks else ()
            self._decks[site] = [*faults_at(site), *more]
            self.random.shuffle(self._decks[site])
        fault = self._decks[site].pop()
        self.hits[f"{fault}, {site}"] += 1
        return fault

    def owed(self, sites: Collection[str]) -> list[str]:
        """The faults that these sites have not met yet."""
        pairs = (f"{fault}, {site}" for site in sites for fault in faults_at(site))
        return [pair for pair in pairs if not self.hits[pair]]

    def deliver_late(self, delivery: Callable[[], Awaitable[None]]) -> None:
        """Deliver some time later; any four in a row are spread over the whole time."""
        part = self._late_count % _LATE_PARTS
        self._late_count += 1
        delay_s = (part + self.random.random()) / _LATE_PARTS * self.late_max_s

        async def deliver() -> None:
            await asyncio.sleep(delay_s)
            await delivery()

        task = asyncio.create_task(deliver())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def all_delivered(self) -> None:
        """Wait until nothing is on its way any more."""
        while self._late:
            await asyncio.gather(*self._late)


class FaultyAwsJson(AwsJson):
    """Meets the faults that it is given; without any it is the client that it is made of."""

    faults: Faults | None = None

    @override
    async def post(self, operation: str, body: bytes) -> tuple[int, bytes]:
        site = write_site(operation, from_json(body))
        if self.faults is None or site is None:
            return await super().post(operation, body)
        fault = self.faults.next(site)
        match fault:
            case None:
                return await super().post(operation, body)
            case "killed before":
                raise Killed
            case "killed after":
                await self._quietly(operation, body)
                raise Killed
            case "lost":
                await self._quietly(operation, body)
                raise StoreUnavailable("injected", maybe_applied=True)
            case "late":
                self.faults.deliver_late(partial(self._quietly, operation, body))
                raise StoreUnavailable("injected", maybe_applied=True)
            case "twice":
                reply = await super().post(operation, body)
                await self._quietly(operation, body)
                return reply
            case _:
                return 400, refusal(fault, cancels=site in TRANSACTION_SITES)

    async def _quietly(self, operation: str, body: bytes) -> None:
        try:
            await super().post(operation, body)
        except StoreUnavailable:
            return


def refusal(code: str, *, cancels: bool) -> bytes:
    """The reply that refuses a call for now, or cancels a transaction for that reason.

    Shapes: "Error handling with DynamoDB" in the developer guide and "TransactWriteItems" in the
    API reference (seen 2026-11-21). Synthetic: no local engine refuses so.
    """
    if not cancels:
        return to_json({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "later"})
    return to_json(
        {
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled",
            "CancellationReasons": [{"Code": "None"}, {"Code": code, "Message": "later"}],
        }
    )
