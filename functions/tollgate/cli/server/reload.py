"""`tollgate dev` serves what is saved: a file that is fine replaces the last one that was."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, Generic, TypeVar

import click

from tollgate.core.clock import Clock
from tollgate.routing.file.compile import compile_routing
from tollgate.routing.file.includes import find_included
from tollgate.routing.file.load import inspect
from tollgate.routing.file.problems import InvalidRouting, render_text
from tollgate.routing.planning.catalog import Catalog

_EVERY_S: Final = 0.5

Made = TypeVar("Made")
_Stamps = dict[Path, tuple[int, int] | None]


class Reloaded(Generic[Made]):
    """What is made of the file's catalog; implements what the apps ask of catalogs."""

    def __init__(self, catalog: Catalog, make: Callable[[Catalog], Made]) -> None:
        self._make = make
        self._made = make(catalog)

    async def for_key(self, key_id: str | None) -> Made:
        """What serves every key."""
        return self._made

    async def settled(self) -> None:
        """Nothing goes on beside requests."""

    def replace(self, catalog: Catalog) -> None:
        """From now on requests are served by this catalog; those that run keep theirs."""
        self._made = self._make(catalog)


class RoutingSource:
    """A routing file on disk and what it includes, production's and development's."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._globs: tuple[str, ...] = ()
        self._stamps: _Stamps = {}

    def read(self) -> Catalog:
        """The catalog of the files as they are; InvalidRouting with every error."""
        # Taken first: what is saved while it is read is read again.
        before = self._stamps_now()
        inspection = inspect(self._path, dev=True)
        self._globs = inspection.globs
        self._stamps = {file: before.get(file, _stamp(file)) for file in inspection.files}
        if inspection.routing is None:
            raise InvalidRouting(inspection.errors)
        return Catalog.from_json(compile_routing(inspection.routing).content)

    def has_changed(self) -> bool:
        """Whether a file that was read last is another now, or a glob matches other files."""
        return self._stamps_now() != self._stamps

    async def watch(self, clock: Clock, takers: Sequence[Callable[[Catalog], None]]) -> None:
        """Hand over each catalog that is saved, and tell what is wrong with the others."""
        while True:
            await clock.sleep(_EVERY_S)
            if not await asyncio.to_thread(self.has_changed):
                continue
            try:
                catalog = await asyncio.to_thread(self.read)
            except InvalidRouting as invalid:
                problems = "\n".join(render_text(problem) for problem in invalid.problems)
                click.echo(f"{problems}\nThe last good {self._path.as_posix()} is served on.")
                continue
            for take in takers:
                take(catalog)
            click.echo(
                f"{self._path.as_posix()} is served as saved: "
                f"{len(catalog.models)} models (catalog {catalog.sha[:7]})"
            )

    def _stamps_now(self) -> _Stamps:
        others = (find_included(self._path, glob).files for glob in self._globs)
        return {file: _stamp(file) for file in (self._path, *chain.from_iterable(others))}


def _stamp(file: Path) -> tuple[int, int] | None:
    """What changes when a file is saved; None while it is not there."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size
