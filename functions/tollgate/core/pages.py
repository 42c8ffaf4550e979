"""Lists that are read a page at a time."""

from typing import Generic, TypeVar

from msgspec import Struct

_Found = TypeVar("_Found")


class Page(Struct, Generic[_Found], frozen=True, kw_only=True):
    """Some of a list; `next` is where it goes on, None at its end.

    `unreadable` names the stored items of this page that make no sense and are left out.
    """

    found: tuple[_Found, ...]
    next: str | None
    unreadable: tuple[str, ...] = ()
