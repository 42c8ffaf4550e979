"""The age at which a workspace refuses the secrets of its keys."""

from typing import Final

from tollgate.core.clock import DAY_S

KEY_DAYS_MAX: Final = 3_650
# Rotation is announced this long before the secret is refused, or halfway if that is later.
_REMINDED_BEFORE_S: Final = 14 * DAY_S


def age_ends_s(made_s: int, days: int) -> int:
    """Return the Unix second from which a secret is refused."""
    return made_s + days * DAY_S


def reminded_from_s(made_s: int, days: int) -> int:
    """Return the Unix second from which the rotation of a secret is announced."""
    return age_ends_s(made_s, days) - min(_REMINDED_BEFORE_S, days * DAY_S // 2)
