"""The end of a model at a provider: when it is announced, and when it comes."""

from math import inf
from typing import Final

from msgspec import Struct


class Lifecycle(Struct, frozen=True, kw_only=True):
    """The dates of an endpoint's end, in Unix seconds; infinite if no date is known."""

    notice_s: float = inf
    """The time from which replies announce the end."""
    deprecated_s: float = inf
    retires_s: float = inf
    """The time from which no request is sent."""
    successor: str | None = None
    """The slug of the model to use instead."""


ENDLESS: Final = Lifecycle()
