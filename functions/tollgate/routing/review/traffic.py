"""Reads recorded traffic: one generation per line, as returned by `GET /generations`."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct, field

from tollgate.core.money.amounts import nano_usd
from tollgate.core.records.generation import Fee, Outcome, RoutingTrace
from tollgate.core.usage import Usage
from tollgate.routing.price import MODEL_ITEMS

# Records contain no conversation text, so a longer line is not a record.
_LINE_BYTES_MAX: Final = 1_000_000
_PIECES_PER_RATE: Final = 1_000_000
# Outcomes that are charged; failed and lost generations are free.
_BILLED: Final = frozenset({"ok", "cancelled"})


class BadTraffic(Exception):
    """Raised for a line that is not a generation, or does not have a field that a replay needs."""


class RecordedLine(Struct, frozen=True):
    """A line of a recorded bill."""

    item: str
    quantity: int
    usd_per_million: Decimal
    round: int | None = None


class RecordedAttempt(Struct, frozen=True):
    """An attempt of a recorded request."""

    service_tier: str | None = None


class RecordedRequest(Struct, frozen=True, kw_only=True):
    """The fields of a generation that a replay needs."""

    id: str
    created_at: Annotated[datetime, Meta(tz=True)]
    status: Outcome
    model: str | None
    provider_name: str | None
    upstream_model: str | None
    service_tier: str | None = None
    attempts: tuple[RecordedAttempt, ...] = field(default=(), name="provider_responses")
    key_id: str
    key_name: str = ""
    total_cost: Decimal
    cost_lines: tuple[RecordedLine, ...] = ()
    tokens: Usage
    rounds: tuple[Usage, ...] = ()
    trace: RoutingTrace
    bill_only: bool = False
    """True for the bill of an expired record, which cannot be replayed."""

    @property
    def created_s(self) -> int:
        """Unix time at which the generation was admitted."""
        return int(self.created_at.timestamp())

    @property
    def cost_nano_usd(self) -> int:
        """Cost that the caller paid."""
        return nano_usd(self.total_cost)

    @property
    def billed(self) -> bool:
        """True if the caller pays for this outcome."""
        return self.status in _BILLED

    @property
    def billed_rounds(self) -> tuple[Usage, ...]:
        """The usage of each round that has a reply; empty for a generation with a single round."""
        billed = {line.round for line in self.cost_lines if line.item in MODEL_ITEMS}
        return tuple(usage for number, usage in enumerate(self.rounds, 1) if number in billed)

    @property
    def fees(self) -> tuple[Fee, ...]:
        """The fees in the bill, for tools and pages."""
        return tuple(
            Fee(
                item=line.item,
                quantity=line.quantity,
                usd_each=line.usd_per_million / _PIECES_PER_RATE,
            )
            for line in self.cost_lines
            if line.item not in MODEL_ITEMS
        )


_REQUESTS: Final = msgspec.json.Decoder(RecordedRequest)


def read_traffic(lines: Iterable[bytes]) -> Iterator[RecordedRequest]:
    """Yield the generations in a JSONL file, except expired ones with only a bill; raise BadTraffic
    for an invalid line.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if len(line) > _LINE_BYTES_MAX:
            raise BadTraffic(f"line {number} is longer than {_LINE_BYTES_MAX} bytes")
        try:
            request = _REQUESTS.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as invalid:
            raise BadTraffic(f"line {number}: {invalid}") from invalid
        if not request.bill_only:
            yield request
