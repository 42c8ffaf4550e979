"""The cooldown of an endpoint that keeps failing."""

from msgspec import Struct


class CooldownPolicy(Struct, frozen=True, kw_only=True):
    """The rule for an endpoint's cooldown, during which other endpoints are preferred."""

    after_failures: int = 3
    """Failures within `within_s` that start a cooldown."""
    within_s: float = 60.0
    rest_s: float = 30.0
    """The length of a cooldown."""
