"""Lists that are read a page at a time."""

from dataclasses import dataclass
from typing import Generic, TypeVar

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[_Found]):
    """Some of a list; `next` is where it goes on, None at its end.

    `unreadable` names the stored items of this page that make no sense and are left out.
    """

    found: tuple[_Found, ...]
    next: str | None
    unreadable: tuple[str, ...] = ()
