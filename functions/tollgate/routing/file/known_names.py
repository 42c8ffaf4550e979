"""Collects the names in several files once, because a file may have 20,000 aliases."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Final

from msgspec import Struct

from tollgate.routing.file.document import YamlDocument
from tollgate.routing.schema import IncludedFile

# The number of suggestions is limited: comparing a name with 20,000 names takes a second, and
# removing one model may break that many aliases.
_SUGGESTIONS_MAX: Final = 20


class LoadedFile(Struct, frozen=True):
    """A routing file: its document, and its entries that have no errors."""

    document: YamlDocument
    content: IncludedFile

    def names(self, section: str) -> frozenset[str]:
        """Return every name in a section, including those of entries with errors."""
        entries = self.document.value((section,))
        return frozenset(entries) if isinstance(entries, dict) else frozenset()


class KnownNames:
    """Names and alias cycles across files that may refer to each other."""

    def __init__(self, files: Sequence[LoadedFile]) -> None:
        self._files = files
        self._names: dict[tuple[str, ...], frozenset[str]] = {}
        self._nearest: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def of(self, sections: Sequence[str]) -> frozenset[str]:
        """Return all names in these sections."""
        key = tuple(sections)
        if key not in self._names:
            self._names[key] = frozenset(
                name for each in self._files for section in key for name in each.names(section)
            )
        return self._names[key]

    def nearest(self, name: str, sections: Sequence[str]) -> str | None:
        """Return the most similar name; None if there is none, or after 20 suggestions."""
        key = (name, tuple(sections))
        if key not in self._nearest and len(self._nearest) < _SUGGESTIONS_MAX:
            names = sorted(self.of(sections))
            self._nearest[key] = next(iter(get_close_matches(name, names, n=1)), None)
        return self._nearest.get(key)

    @cached_property
    def circles(self) -> dict[str, list[str]]:
        """Alias cycles, each under its alphabetically first name; each list begins and ends with
        that name.
        """
        return find_circles(
            {name: alias.to for each in self._files for name, alias in each.content.aliases.items()}
        )


def find_circles(aliases: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the alias cycles, each under its alphabetically first name."""
    circles: dict[str, list[str]] = {}
    # The start of the walk that first reached each alias; no alias is followed twice.
    walk_of: dict[str, str] = {}
    for start in aliases:
        name = start
        while name in aliases and name not in walk_of:
            walk_of[name] = start
            name = aliases[name]
        if walk_of.get(name) == start:
            path = _circle_through(name, aliases)
            circles[path[0]] = path
    return circles


def _circle_through(name: str, aliases: Mapping[str, str]) -> list[str]:
    path = [name]
    while (following := aliases[path[-1]]) != name:
        path.append(following)
    least = path.index(min(path))
    return [*path[least:], *path[:least], path[least]]
