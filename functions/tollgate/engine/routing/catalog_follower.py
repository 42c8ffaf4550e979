"""Switches to newly published catalogs without a restart.

A request uses the same catalog from start to end. A newer catalog is loaded in the background;
requests wait for it only once it has been live for `_OPTIONAL_FOR_S`. A catalog that cannot be
loaded is reported and tried again later. Until then, the last good catalog stays in use, which
after a start is the bundled one.
"""

import asyncio
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from tollgate.core.clock import Clock
from tollgate.core.routing.publication import Publication, PublishedCatalogs
from tollgate.engine.gateway import Journal
from tollgate.routing.planning.catalog import Catalog

# Every instance must switch within 30 s. The pointer is cached for 5 s, which leaves 25 s for
# loading.
_OPTIONAL_FOR_S: Final = 20
_WAIT_MAX_S: Final = 5.0
_RETRY_AFTER_S: Final = 15.0

Served = TypeVar("Served")


class CatalogFollower(Generic[Served]):
    """Caches `make(catalog)` for the live, the candidate and the bundled catalog.

    `as_candidate` turns the result into the one for keys that a candidate serves.
    """

    def __init__(
        self,
        publications: PublishedCatalogs,
        bundled: Catalog,
        make: Callable[[Catalog], Served],
        *,
        as_candidate: Callable[[Served], Served],
        clock: Clock,
        journal: Journal,
    ) -> None:
        self._publications = publications
        self._make = make
        self._as_candidate = as_candidate
        self._clock = clock
        self._journal = journal
        self._bundled = bundled.sha
        self._served = {bundled.sha: make(bundled)}
        self._candidates: dict[str, Served] = {}
        self._good = bundled.sha
        self._loading: dict[str, asyncio.Task[None]] = {}
        self._failed_s: dict[str, float] = {}
        self._publication: Publication | None = None

    async def for_key(self, key_id: str | None) -> Served:
        """Return `make(catalog)` for a key's catalog; without a key, for the live catalog."""
        publication = await self._published()
        if publication is None:
            return self._served[self._good]
        overdue = self._clock.now_s() - publication.moved_s >= _OPTIONAL_FOR_S
        # If the candidate cannot be loaded, the live catalog is used.
        for sha in dict.fromkeys((publication.sha_for(key_id), publication.live)):
            if sha not in self._served:
                loading = self._load(sha)
                # Requests wait for a catalog only once, because a failed load is repeated in the
                # background.
                if overdue and sha not in self._failed_s:
                    await asyncio.wait({loading}, timeout=_WAIT_MAX_S)
            if sha in self._served:
                if sha != publication.live:
                    return self._candidate(sha)
                self._good = sha
                return self._served[sha]
        return self._served[self._good]

    async def finish_loading(self) -> None:
        """Wait up to `_WAIT_MAX_S` for running loads, because Lambda freezes the process between
        invocations.
        """
        if self._loading:
            await asyncio.wait(set(self._loading.values()), timeout=_WAIT_MAX_S)

    def _candidate(self, sha: str) -> Served:
        if sha not in self._candidates:
            self._candidates = {sha: self._as_candidate(self._served[sha])}
        return self._candidates[sha]

    async def _published(self) -> Publication | None:
        try:
            self._publication = await self._publications.publication()
        except Exception as failure:
            self._journal.catalog_rejected(
                "the published pointer cannot be read", failure, serving=self._good
            )
        return self._publication

    def _load(self, sha: str) -> asyncio.Task[None]:
        task = self._loading.get(sha)
        if task is None:
            task = asyncio.create_task(self._load_once(sha))
            self._loading[sha] = task
            task.add_done_callback(lambda _: self._loading.pop(sha))
        return task

    async def _load_once(self, sha: str) -> None:
        now_s = self._clock.monotonic_s()
        if now_s - self._failed_s.get(sha, float("-inf")) < _RETRY_AFTER_S:
            return
        try:
            served = self._make(Catalog.from_json(await self._publications.catalog(sha)))
        except Exception as failure:
            self._failed_s[sha] = now_s
            self._journal.catalog_rejected(
                f"catalog {sha} cannot be served", failure, serving=self._good
            )
            return
        self._failed_s.pop(sha, None)
        self._served[sha] = served
        self._forget_others()

    def _forget_others(self) -> None:
        publication = self._publication
        shas = {self._bundled, self._good}
        if publication is not None:
            shas |= {publication.live, publication.candidate or publication.live}
        self._served = {sha: served for sha, served in self._served.items() if sha in shas}
