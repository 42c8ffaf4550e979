"""The settings of a key: what is chosen when a key is created, and may be changed later.

`KeySettings` is the one list of them. A field with an `Offer` is a plain setting: the api and
`tollgate keys` pass its value on as it is, so their fields and options are made from this list.
The other settings look different outside (USD, moments), and are written out where they do.
"""

from collections.abc import Mapping
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from msgspec import Struct, field

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.limits import Period
from tollgate.stores.rules.account import HOLDS_MAX

ContentDays = Literal[1, 7, 30, 90]
# An expiry rule of the bucket deletes content after each of these.
CONTENT_DAYS: Final[tuple[int, ...]] = get_args(ContentDays)
# More requests per minute than one key sends.
RATE_MAX: Final = 1_000_000
_TOKENS_MAX: Final = 1_000_000_000
_TIER_LENGTH_MAX: Final = 64


def check_days(name: str, days: int | None) -> None:
    """Raise RequestError for a number of days for which the bucket has no expiry rule."""
    if days not in (None, *CONTENT_DAYS):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{name} must be one of {', '.join(map(str, CONTENT_DAYS))}, or null.",
            param=name,
        )


class KeyOption(Struct, frozen=True, kw_only=True):
    """The form in which the api and the command line offer a plain setting."""

    option: str
    """Option of `tollgate keys`, without its dashes."""
    text: str
    """Description in the api, and help of the option."""
    # Bounds of a number; a number has both.
    lowest: int | None = None
    highest: int | None = None
    length_max: int | None = None
    """Longest text, in characters."""
    accepted: Any = None
    """Type of the values that the api accepts, where it is narrower than the field's."""


class KeySettings(Struct, frozen=True, kw_only=True):
    """The settings of a key. Raises RequestError for a value that no key can have."""

    label: str
    """Name that people know the key by."""
    tier: Annotated[
        str | None,
        KeyOption(option="tier", text="Tier of routing.yaml.", length_max=_TIER_LENGTH_MAX),
    ] = None
    """Tier of routing.yaml, whose limits count beside the key's own."""
    models: tuple[str, ...] | None = None
    """Globs of the models that the key may use; None allows all."""
    limits_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """Spending limits in nano-dollars; a period that is absent is not limited."""
    requests_per_minute: Annotated[
        int,
        KeyOption(
            option="rpm",
            text="Requests per minute. A new key has 60, or all that a tier with a rate allows.",
            lowest=1,
            highest=RATE_MAX,
        ),
    ] = 60
    """Average rate, refilled evenly (GCRA)."""
    burst: Annotated[
        int,
        KeyOption(
            option="burst",
            text="Requests at once after a pause. A new key has 120, or all that a tier with a "
            "rate allows.",
            lowest=1,
            highest=RATE_MAX,
        ),
    ] = 120
    """Requests that may come at once after a pause."""
    tokens_per_minute: Annotated[
        int | None,
        KeyOption(option="tpm", text="Tokens per minute.", lowest=1, highest=_TOKENS_MAX),
    ] = None
    """Tokens in one minute of the clock; None does not limit them."""
    concurrency: Annotated[
        int | None,
        KeyOption(
            option="concurrency", text="Requests at the same time.", lowest=1, highest=HOLDS_MAX
        ),
    ] = None
    """Requests at the same time; None does not limit them."""
    expires_s: int | None = None
    """Unix second from which the key is refused; None never."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels (team, member, environment) that spending is grouped by."""
    disabled: bool = False
    """Whether the key is refused until it is enabled again."""
    content_days: Annotated[
        int | None,
        KeyOption(
            option="content-days",
            text="Days that prompts and answers are kept: 1, 7, 30 or 90.",
            accepted=ContentDays,
        ),
    ] = None
    """Days that prompts and answers are kept; None keeps nothing."""
    response_days: Annotated[
        int | None,
        KeyOption(
            option="response-days",
            text="Days that responses are stored, for `previous_response_id`: 1, 7, 30 or 90. "
            "Without it, those of the workspace.",
            accepted=ContentDays,
        ),
    ] = None
    """Days that responses are stored for later requests; None leaves it to the workspace."""
    team_id: Annotated[
        str | None,
        KeyOption(
            option="team",
            text="Id of the team whose limits count too. Without it, that of the member.",
            length_max=64,
        ),
    ] = None
    """Team whose limits count too; None leaves it to the member's."""
    member_id: Annotated[
        str | None,
        KeyOption(
            option="member",
            text="Id of the member that the key belongs to, whose limits count too.",
            length_max=128,
        ),
    ] = None
    """Member that the key belongs to, whose limits count too."""

    def __post_init__(self) -> None:
        numbers: dict[str, int | None] = {
            name: getattr(self, name)
            for name, setting in PLAIN_SETTINGS.items()
            if setting.offer.lowest is not None
        }
        limits = {f"limits.{period}": limit for period, limit in self.limits_nano_usd.items()}
        for name, value in {**numbers, **limits}.items():
            if value is not None and value <= 0:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"{name} must be more than 0.", param=name
                )
        check_days("content_days", self.content_days)
        check_days("response_days", self.response_days)


class PlainSetting(Struct, frozen=True):
    """A plain setting of KeySettings, with the type of its field."""

    type: Any
    offer: KeyOption

    @property
    def is_optional(self) -> bool:
        """True for a setting that a key can be without."""
        return NoneType in get_args(self.type)


def _plain_settings() -> dict[str, PlainSetting]:
    found = {}
    for name, hint in get_type_hints(KeySettings, include_extras=True).items():
        for offer in getattr(hint, "__metadata__", ()):
            found[name] = PlainSetting(get_args(hint)[0], offer)
    return found


PLAIN_SETTINGS: Final[Mapping[str, PlainSetting]] = _plain_settings()
