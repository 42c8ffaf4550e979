"""Look up the names of several files, each list made once: a file may have 20,000 aliases."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Final, Protocol

from tollgate.routing.schema import IncludedFile

# To compare one name with 20,000 takes a second, and one lost model may leave as many aliases.
_SUGGESTIONS_MAX: Final = 20


class NamedFile(Protocol):
    """A file of the routing, with the names in its sections."""

    @property
    def content(self) -> IncludedFile:
        """The entries without errors."""

    def names(self, section: str) -> frozenset[str]:
        """Return every name of a section, those of entries with errors too."""


class KnownNames:
    """The names, and the circles of aliases, of files that may refer to each other."""

    def __init__(self, files: Sequence[NamedFile]) -> None:
        self._files = files
        self._names: dict[tuple[str, ...], frozenset[str]] = {}
        self._nearest: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def of(self, sections: Sequence[str]) -> frozenset[str]:
        """Return the names of some sections."""
        key = tuple(sections)
        if key not in self._names:
            self._names[key] = frozenset(
                name for each in self._files for section in key for name in each.names(section)
            )
        return self._names[key]

    def nearest(self, name: str, sections: Sequence[str]) -> str | None:
        """Return the most similar name; None without one, or after many suggestions."""
        key = (name, tuple(sections))
        if key not in self._nearest and len(self._nearest) < _SUGGESTIONS_MAX:
            names = sorted(self.of(sections))
            self._nearest[key] = next(iter(get_close_matches(name, names, n=1)), None)
        return self._nearest.get(key)

    @cached_property
    def circles(self) -> dict[str, list[str]]:
        """Each circle of aliases, from its first name back to it, by that name."""
        return find_circles(
            {name: alias.to for each in self._files for name, alias in each.content.aliases.items()}
        )


def find_circles(aliases: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each circle by the least of its names; every alias is followed once."""
    circles: dict[str, list[str]] = {}
    walk_of: dict[str, str] = {}  # by alias, the alias from which it was reached first
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
