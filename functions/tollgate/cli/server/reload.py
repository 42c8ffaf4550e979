"""Reload of a changed routing file in `tollgate dev`."""

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
from tollgate.routing.routing_file import Routing
from tollgate.settings import Settings

_EVERY_S: Final = 0.5

Made = TypeVar("Made")
_Stamps = dict[Path, tuple[int, int] | None]


def _unchanged(routing: Routing) -> Routing:
    return routing


class Reloaded(Generic[Made]):
    """The object built from the latest catalog; implements `Catalogs` and `Gateways`."""

    def __init__(self, catalog: Catalog, make: Callable[[Catalog], Made]) -> None:
        self._make = make
        self._made = make(catalog)

    async def for_key(self, key_id: str | None) -> Made:
        """Return the current object, which is the same for every key."""
        return self._made

    async def finish_loading(self) -> None:
        """Return immediately, because nothing loads in the background."""

    def replace(self, catalog: Catalog) -> None:
        """Build the object for later requests from another catalog."""
        self._made = self._make(catalog)


class RoutingSource:
    """A routing file on disk, with all files that it includes, even those for development.

    `complete` adds sections to each routing that are in no file.
    """

    def __init__(self, path: Path, complete: Callable[[Routing], Routing] = _unchanged) -> None:
        self._path = path
        self._complete = complete
        self._globs: tuple[str, ...] = ()
        self._stamps: _Stamps = {}

    def read(self) -> Catalog:
        """Return the compiled catalog; raise InvalidRouting with all errors."""
        # Stamps are taken before reading, so that a file saved during the read counts as changed.
        before = self._stamps_now()
        inspection = inspect(self._path, dev=True, variables=Settings().variables)
        self._globs = inspection.globs
        self._stamps = {file: before.get(file, _stamp(file)) for file in inspection.files}
        if inspection.routing is None:
            raise InvalidRouting(inspection.errors_in_dev)
        return Catalog.from_json(compile_routing(self._complete(inspection.routing)).content)

    def has_changed(self) -> bool:
        """Return whether a file, or the set of included files, has changed since `read`."""
        return self._stamps_now() != self._stamps

    async def watch(self, clock: Clock, takers: Sequence[Callable[[Catalog], None]]) -> None:
        """Pass each new valid catalog to the objects that use it; print the errors of an invalid
        file.
        """
        while True:
            await clock.sleep(_EVERY_S)
            if not await asyncio.to_thread(self.has_changed):
                continue
            try:
                catalog = await asyncio.to_thread(self.read)
            except InvalidRouting as invalid:
                problems = "\n".join(render_text(problem) for problem in invalid.problems)
                click.echo(f"{problems}\nThe last valid {self._path.as_posix()} stays in use.")
                continue
            for take in takers:
                take(catalog)
            click.echo(
                f"{self._path.as_posix()} was reloaded: "
                f"{len(catalog.models)} models (catalog {catalog.sha[:7]})"
            )

    def _stamps_now(self) -> _Stamps:
        included = (find_included(self._path, glob).files for glob in self._globs)
        return {file: _stamp(file) for file in (self._path, *chain.from_iterable(included))}


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return a file's modification time and size, or None if the file does not exist."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size
