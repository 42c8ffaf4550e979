"""Pages of a list."""

from typing import Generic, TypeVar

from msgspec import Struct

_Found = TypeVar("_Found")


class Page(Struct, Generic[_Found], frozen=True, kw_only=True):
    """One page of a list that is read from a store."""

    found: tuple[_Found, ...]
    next: str | None
    """The cursor for the next page; None on the last page."""
    unreadable: tuple[str, ...] = ()
    """The keys of corrupt items on this page, which are left out."""
