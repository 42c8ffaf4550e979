"""Divides the CPU time of one request among the documents that are read for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from tollgate.core.documents.reading import (
    CPU_SECONDS_MAX,
    DocumentFault,
    ReadingShare,
    UnreadableDocument,
)

# Maximum number of documents that one request reads concurrently.
_AT_A_TIME_MAX: Final = 2


class TakenShare(Struct, kw_only=True):
    """A share of the budget; the reading records how much of the share it used."""

    share: ReadingShare
    cpu_seconds: float


class ReadingBudget:
    """The CPU time that all documents of a request may take together.

    A reading takes its share before it begins and returns what it did not use, so the documents of
    a request never exceed the budget. Light documents are read two at a time. Once much of the
    budget is used, a document waits until the one being read has returned its remainder.
    """

    def __init__(self, workspace_id: str, *, documents: int) -> None:
        self._workspace_id = workspace_id
        self._rest = CPU_SECONDS_MAX
        self._share = CPU_SECONDS_MAX / min(max(documents, 1), _AT_A_TIME_MAX)
        self._running = 0
        self._change = asyncio.Condition()

    @asynccontextmanager
    async def share(self) -> AsyncIterator[TakenShare]:
        """Take a share for one reading; raise UnreadableDocument if the budget is used up."""
        async with self._change:
            await self._change.wait_for(self._is_enough)
            seconds = min(self._share, self._rest)
            if seconds <= 0:
                raise UnreadableDocument(DocumentFault.TOO_SLOW)
            self._rest -= seconds
            self._running += 1
        share = ReadingShare(workspace_id=self._workspace_id, cpu_seconds_max=seconds)
        # A failed reading counts as having used its whole share.
        taken = TakenShare(share=share, cpu_seconds=seconds)
        try:
            yield taken
        finally:
            self._rest += max(0.0, seconds - taken.cpu_seconds)
            self._running -= 1
            async with self._change:
                self._change.notify_all()

    def _is_enough(self) -> bool:
        return self._running == 0 or (
            self._running < _AT_A_TIME_MAX and self._rest >= self._share / 2
        )
