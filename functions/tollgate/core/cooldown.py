"""When an endpoint that keeps failing is left alone."""

from msgspec import Struct


class CooldownPolicy(Struct, frozen=True, kw_only=True):
    """When an endpoint rests: after so many failures within that time, for so long."""

    after_failures: int = 3
    within_s: float = 60.0
    rest_s: float = 30.0
