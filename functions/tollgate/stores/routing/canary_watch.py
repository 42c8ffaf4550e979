"""Withdraws a candidate catalog if the catalog's traffic breaks its terms.

A look is stored before the pointer moves, and only if it is later than the stored look. So only one
of two sweepers decides. If a sweeper dies between the two writes, the next one moves the pointer.
"""

import logging
from typing import Final

from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.records.activity import GenerationFilter
from tollgate.core.records.audit import SWEEPER
from tollgate.core.routing.canary import Look, Terms
from tollgate.core.routing.publication import (
    Publication,
    Publications,
    Signature,
    withdraw_canary,
)
from tollgate.stores.money.workspaces import Workspaces
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.routing.canary_looks import (
    BEFORE_S,
    SETTLES_S,
    CanaryKey,
    due_look,
    group_by_key,
    look_at,
)
from tollgate.stores.rules.audit_entries import AuditedChange, new_entry

_log = logging.getLogger(__name__)

# Maximum number of records that a look reads from before the publication, and again from after it,
# divided among the workspaces, so that a sweep ends in time.
_RECORDS_MAX: Final = 100_000
_PAGE_MAX: Final = 1_000


class CanaryWatch:
    """Looks at the traffic of a candidate with terms; the sweep runs it."""

    def __init__(
        self,
        publications: Publications,
        workspaces: Workspaces,
        generations: DynamoGenerationStore,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._publications = publications
        self._workspaces = workspaces
        self._generations = generations
        self._ids = ids
        self._clock = clock

    async def run(self) -> Look | None:
        """Carry out the look that is due, and return it; None if none is due.

        Raises LedgerError(service_unavailable) if the store is unavailable; the next run completes
        the work.
        """
        publication = await self._publications.publication()
        if publication is None or publication.terms is None:
            return None
        number = due_look(publication, self._clock.now_s())
        if number is None:
            return None
        look = await self._publications.look()
        if look is None or (look.revision, look.number) < (publication.revision, number):
            look = await self._look(publication, publication.terms, number)
            if not await self._publications.keep_look(look):
                _log.info("another sweeper has looked at the canary")
                return None
        elif look.broken is None:
            return None
        # A late sweeper may read a look at a newer publication, which has other terms.
        if look.revision != publication.revision:
            return None
        reason = look.describe_break(publication.terms)
        if reason is not None:
            await self._withdraw(publication, reason)
        return look

    async def _look(self, publication: Publication, terms: Terms, number: int) -> Look:
        """Read the requests around the publication, and compare both catalogs."""
        now_s = int(self._clock.now_s())
        moved_s = publication.moved_s
        times = (
            GenerationFilter(since_s=moved_s - BEFORE_S, until_s=moved_s),
            GenerationFilter(since_s=moved_s + SETTLES_S, until_s=now_s),
        )
        traffic: dict[str, CanaryKey] = {}
        names = await self._list_workspaces()
        share = _RECORDS_MAX // max(1, len(names))
        for name in names:
            for wanted in times:
                await self._count(name, wanted, publication, records_max=share, into=traffic)
        return look_at(publication, terms, list(traffic.values()), number=number, now_s=now_s)

    async def _list_workspaces(self) -> list[str]:
        names: list[str] = []
        after: str | None = None
        while True:
            page = await self._workspaces.list(after=after)
            names += [workspace.id for workspace in page.found]
            after = page.next
            if after is None:
                return names

    async def _count(
        self,
        workspace_id: str,
        wanted: GenerationFilter,
        publication: Publication,
        *,
        records_max: int,
        into: dict[str, CanaryKey],
    ) -> None:
        read, before = 0, None
        while read < max(records_max, _PAGE_MAX):
            page = await self._generations.page(
                workspace_id, wanted, limit=_PAGE_MAX, before=before
            )
            group_by_key(page.found, publication, into)
            read, before = read + len(page.found), page.next
            if before is None:
                return

    async def _withdraw(self, publication: Publication, reason: str) -> None:
        """End the canary, unless another publication came first."""
        now_s = int(self._clock.now_s())
        after = withdraw_canary(publication, reason, Signature(by=SWEEPER.id, at_s=now_s))
        change = AuditedChange(
            action="catalog.withdraw",
            target=publication.candidate or publication.live,
            workspace_id=None,
            before=publication,
            after=after,
        )
        entry = new_entry(change, SWEEPER, ids=self._ids, clock=self._clock)
        try:
            await self._publications.move(after, entry)
        except RequestError as refused:
            if refused.code is not ErrorCode.IDEMPOTENCY_CONFLICT:
                raise
            _log.info("another publication has ended the canary")
