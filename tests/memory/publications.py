"""The history of published catalogs, kept in memory."""

from collections.abc import Sequence

from tollgate.core.routing.publication import Publication


class MemoryPublications:
    """Returns the publications that it was made with, latest first."""

    def __init__(self, *made: Publication) -> None:
        self._made = made

    async def history(self) -> Sequence[Publication]:
        return self._made[::-1]

    async def publication(self) -> Publication | None:
        return self._made[-1] if self._made else None
