"""How a call to an AWS store can fail, and what of it the rest of Tollgate gets to see."""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from tollgate.core.errors import ErrorCode, LedgerError
from tollgate.stores.attributes import Item

_COME_BACK_S = 1.0


class StoreError(Exception):
    """A call to a store did not do what was asked."""


class ConditionFailed(StoreError):
    """A conditional write was refused; `item` is what was there instead, None if nothing."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("the condition of a write failed")
        self.item = item


class CancellationReason(Struct, frozen=True):
    """Why one action of a transaction was refused; `code` is "None" where it was not."""

    code: str
    item: Item | None = None


class TransactionCancelled(StoreError):
    """A transaction was refused as a whole; one reason for each of its actions, in order."""

    def __init__(self, reasons: tuple[CancellationReason, ...]) -> None:
        super().__init__(f"transaction cancelled: {[reason.code for reason in reasons]}")
        self.reasons = reasons


class StoreUnavailable(StoreError):
    """The store gave no usable answer; unless `maybe_applied`, the call has changed nothing."""

    def __init__(self, reason: str, *, maybe_applied: bool) -> None:
        super().__init__(reason)
        self.maybe_applied = maybe_applied


class StoreRejected(StoreUnavailable):
    """The store refuses this call for good: a missing table or right, or a defect of ours."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}", maybe_applied=False)
        self.code = code


@contextmanager
def refusing_when_unavailable() -> Iterator[None]:
    """Turn StoreUnavailable into the public 503: a check that cannot be made refuses."""
    try:
        yield
    except StoreUnavailable as unavailable:
        raise LedgerError(
            ErrorCode.SERVICE_UNAVAILABLE,
            "The gateway cannot reach its own store at the moment.",
            retry_after_s=_COME_BACK_S,
        ) from unavailable
