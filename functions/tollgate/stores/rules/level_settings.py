"""The settings of teams and members, which can have the same limits as keys; every setting is
optional.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field
from typing_extensions import override

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.limits import Period
from tollgate.core.principal import MemberRole
from tollgate.stores.rules.account import UNLIMITED_BURST, UNLIMITED_RATE
from tollgate.stores.rules.key_settings import (
    PLAIN_SETTINGS,
    KeySettings,
    check_guardrail_names,
    check_prompt_policy,
)

_TEAM_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MEMBER_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
_DISPLAY_NAME_MAX: Final = 100
_EMAIL_MAX: Final = 254


def is_team_id(text: str) -> bool:
    """Return True if a text is a valid team id."""
    return _TEAM_ID.fullmatch(text) is not None


def is_member_id(text: str) -> bool:
    """Return True if a text is a valid member id, which may be an e-mail address."""
    return _MEMBER_ID.fullmatch(text) is not None


class LevelSettings(Struct, frozen=True, kw_only=True):
    """The settings of a team; raises RequestError for an invalid value."""

    display_name: str | None = None
    """Name that people see; None shows the id."""
    tier: str | None = None
    """Tier in routing.yaml for keys without a tier."""
    models: tuple[str, ...] | None = None
    """Globs for the models that the level's keys may use; None allows all."""
    limits_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """Spending limits in nano-dollars; an absent period has no limit."""
    requests_per_minute: int | None = None
    """Average rate for all the level's keys together (GCRA); None for no limit."""
    burst: int | None = None
    """Number of requests that may arrive together after a pause; None for twice the rate."""
    tokens_per_minute: int | None = None
    """Tokens per calendar minute; None for no limit."""
    concurrency: int | None = None
    """Number of concurrent requests; None for no limit."""
    prompt_policy: str | None = None
    """Prompt policy for the level's keys; None for none."""
    guardrails: str | None = None
    """Names of guardrails for the level's keys; None for none."""

    def __post_init__(self) -> None:
        for name, plain in PLAIN_SETTINGS.items():
            lowest, highest = plain.offer.lowest, plain.offer.highest
            value = getattr(self, name, None)
            if value is None or lowest is None or highest is None:
                continue
            if not lowest <= value <= highest:
                raise _refuse(name, f"must be from {lowest} to {highest}")
        for period, limit in self.limits_nano_usd.items():
            if limit <= 0:
                raise _refuse(f"limits.{period}", "must be more than 0")
        if self.burst is not None and self.requests_per_minute is None:
            raise _refuse("burst", "needs requests_per_minute")
        if self.display_name is not None and not 1 <= len(self.display_name) <= _DISPLAY_NAME_MAX:
            raise _refuse("display_name", f"must have 1 to {_DISPLAY_NAME_MAX} characters")
        check_prompt_policy(self.prompt_policy)
        check_guardrail_names(self.guardrails)

    @property
    def is_limited(self) -> bool:
        """True if the level has any limit on its keys' requests or spending."""
        counted = (self.requests_per_minute, self.tokens_per_minute, self.concurrency)
        return bool(self.limits_nano_usd) or any(limit is not None for limit in counted)


def counts_holds(settings: LevelSettings, slices: int) -> bool:
    """Return True if holds are counted on a level whose state has this many slices.

    A level with several slices counts holds even if it has no limits. Otherwise, new limits would
    need a new seed, which replaces a single state item and ignores the holds on other slices.
    """
    return settings.is_limited or slices > 1


class MemberSettings(LevelSettings, frozen=True, kw_only=True):
    """The settings of a member."""

    role: MemberRole = "developer"
    team_id: str | None = None
    """Team for the member's keys without a team."""
    email: str | None = None
    disabled: bool = False
    """True to refuse the member's keys and sessions until it is False again."""

    @property
    def is_active_owner(self) -> bool:
        """True if the member may act as an owner now."""
        return self.role == "owner" and not self.disabled

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if self.email is not None and not 1 <= len(self.email) <= _EMAIL_MAX:
            raise _refuse("email", f"must have 1 to {_EMAIL_MAX} characters")


def state_settings(level: LevelSettings) -> KeySettings:
    """Return a level's settings as settings of a key, because the states of both have the same
    form.
    """
    rate = level.requests_per_minute
    burst = level.burst if level.burst is not None else 2 * (rate or 0)
    return KeySettings(
        label="",
        limits_nano_usd=level.limits_nano_usd,
        requests_per_minute=UNLIMITED_RATE if rate is None else rate,
        burst=UNLIMITED_BURST if rate is None else burst,
        tokens_per_minute=level.tokens_per_minute,
        concurrency=level.concurrency,
    )


def _refuse(name: str, problem: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{name} {problem}.", param=name)
