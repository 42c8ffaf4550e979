"""Reports of failed endpoints, which all instances share, sent while the generation goes on."""

import asyncio
from typing import Final

from tollgate.core.cooldown import CooldownPolicy
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.engine.gateway import Journal
from tollgate.stores.base import CooldownStore

# Failures that every caller of the endpoint would meet, not those that one request caused.
_COUNTED: Final = frozenset(
    {
        ErrorCode.PROVIDER_RATE_LIMIT,
        ErrorCode.PROVIDER_OVERLOADED,
        ErrorCode.PROVIDER_UNAVAILABLE,
        ErrorCode.PROVIDER_TIMEOUT,
        ErrorCode.PROVIDER_AUTH,
    }
)
_DELIVERY_LIMIT_S: Final = 1.0


class FailureReports:
    """The reports of one generation, sent in the background until its end."""

    def __init__(self, store: CooldownStore, policy: CooldownPolicy) -> None:
        self._store = store
        self._policy = policy
        self._reports: dict[asyncio.Task[bool], str] = {}

    def note(self, endpoint_id: str, error: UpstreamError) -> None:
        """Report a failure in the background if it is about the endpoint, not about the request."""
        if error.code in _COUNTED:
            report = self._store.count_failure(endpoint_id, self._policy)
            self._reports[asyncio.create_task(report)] = endpoint_id

    async def deliver(self, journal: Journal, request_id: str) -> None:
        """Wait up to a second for the reports: Lambda may freeze the process after the last byte.

        The store handles its own unavailability, so an exception of a report is a defect.
        """
        if not self._reports:
            return
        done, _ = await asyncio.wait(self._reports, timeout=_DELIVERY_LIMIT_S)
        for task in done:
            if task.cancelled():
                continue
            unexpected_error = task.exception()
            if isinstance(unexpected_error, Exception):
                journal.unexpected_error(unexpected_error, request_id)
            elif task.result():
                journal.endpoint_cooled_down(self._reports[task])
