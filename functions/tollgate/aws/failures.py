"""Failures of calls to AWS stores, and the public error service_unavailable that callers see."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from msgspec import Struct

from tollgate.aws.attributes import Item
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, LedgerError

_log = logging.getLogger(__name__)

_RETRY_AFTER_S: Final = 1.0
# Maximum time for which an important write is retried. The retries are worth it: if a settlement is
# left to the sweeper, the hold stays in the item for a quarter of an hour, and each write of a
# larger item costs more.
_REFUSED_FOR_S: Final = 3.0
_PAUSE_MIN_S: Final = 0.2
_PAUSE_MAX_S: Final = 1.0

_Reply = TypeVar("_Reply")


class StoreError(Exception):
    """Raised for a failed call to a store."""


class ConditionFailed(StoreError):
    """Raised if the condition of a write failed; `item` is the stored item, or None if it does not
    exist.
    """

    def __init__(self, item: Item | None) -> None:
        super().__init__("the condition of a write failed")
        self.item = item


class CancellationReason(Struct, frozen=True):
    """The reason why one action of a transaction was refused."""

    code: str
    """DynamoDB's code; "None" if this action was not refused."""
    item: Item | None = None
    """The stored item that failed the action's condition, if DynamoDB returned the item."""


class TransactionCancelled(StoreError):
    """Raised for a refused transaction; `reasons` has one reason for each action, in order."""

    def __init__(self, reasons: tuple[CancellationReason, ...]) -> None:
        super().__init__(f"transaction cancelled: {[reason.code for reason in reasons]}")
        self.reasons = reasons


class StoreUnavailable(StoreError):
    """Raised for a call that got no usable reply; if `maybe_applied` is false, the call has changed
    nothing.
    """

    def __init__(self, reason: str, *, maybe_applied: bool) -> None:
        super().__init__(reason)
        self.maybe_applied = maybe_applied


class StoreRejected(StoreUnavailable):
    """Raised for a call that would fail again: the table or a permission is missing, or the call is
    invalid.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}", maybe_applied=False)
        self.code = code


class CorruptItem(StoreUnavailable):
    """Raised for a stored item that cannot be decoded; `name` is the item's partition and sort
    key.
    """

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"item {name} is corrupt: {error!r}", maybe_applied=False)
        self.name = name


@contextmanager
def refusing_when_unavailable() -> Iterator[None]:
    """Convert StoreUnavailable into the public error with status 503, within a `with` block."""
    try:
        yield
    except StoreUnavailable as unavailable:
        # The caller learns only when to retry; the reason is logged for the operator.
        _log.warning("refused because the store is unavailable: %s", unavailable)
        message = "The gateway cannot reach its own store at the moment."
        if isinstance(unavailable, CorruptItem):
            message = (
                f"The item {unavailable.name} of the gateway's own store cannot be read; "
                "its operator has to repair it."
            )
        raise LedgerError(
            ErrorCode.SERVICE_UNAVAILABLE, message, retry_after_s=_RETRY_AFTER_S
        ) from unavailable


async def repeat_while_refused(
    call: Callable[[], Awaitable[_Reply]],
    clock: Clock,
    *,
    jitter: Callable[[], float],
    for_s: float = _REFUSED_FOR_S,
    pause_max_s: float = _PAUSE_MAX_S,
    is_idempotent: bool = False,
) -> _Reply:
    """Retry a call until the store accepts it; raise StoreUnavailable if the time runs out.

    A temporary refusal, such as DynamoDB's throttling, is always retried. A call without a reply
    may have been applied, so it is retried only if `is_idempotent`. No attempt begins after `for_s`
    seconds.
    """
    give_up_s = clock.monotonic_s() + for_s
    pause_s = _PAUSE_MIN_S
    while True:
        try:
            return await call()
        except (StoreRejected, CorruptItem):
            raise
        except StoreUnavailable as unavailable:
            wait_s = pause_s * jitter()
            is_unsure = unavailable.maybe_applied and not is_idempotent
            if is_unsure or clock.monotonic_s() + wait_s > give_up_s:
                raise
        await clock.sleep(wait_s)
        pause_s = min(2 * pause_s, pause_max_s)
