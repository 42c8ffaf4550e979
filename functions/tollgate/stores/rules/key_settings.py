"""The settings of a key, which can be changed after the key is created.

`KeySettings` is the only list of settings. Fields with a `KeyOption` are plain settings: the API
and `tollgate keys` do not convert their values, so their fields and options are generated. Other
settings look different to callers (USD, times), and are converted by hand.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from msgspec import Struct, field

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.limits import Period
from tollgate.core.money.amounts import nano_usd
from tollgate.core.networks import parse_networks
from tollgate.core.principal import AnswerSharing, KeptAddress, UsageOn
from tollgate.core.prompt_policy import NO_RETENTION, NO_TRAINING, parse_policy
from tollgate.core.quotas import parse_quotas
from tollgate.stores.rules.account import HOLDS_MAX

ContentDays = Literal[1, 7, 30, 90]
# The bucket has an expiry rule for each number of days.
CONTENT_DAYS: Final[tuple[int, ...]] = get_args(ContentDays)
# Maximum rate, which is higher than any key needs.
RATE_MAX: Final = 1_000_000
_TOKENS_MAX: Final = 1_000_000_000
_TIER_LENGTH_MAX: Final = 64
NETWORKS_LENGTH_MAX: Final = 4_000
PROMPT_POLICY_LENGTH_MAX: Final = 200
QUOTAS_LENGTH_MAX: Final = 1_000
GUARDRAILS_LENGTH_MAX: Final = 500
_GUARDRAILS: Final = re.compile(r"[a-z0-9._-]+(, ?[a-z0-9._-]+)*")


def check_days(name: str, days: int | None) -> None:
    """Raise RequestError if the bucket has no expiry rule for a number of days."""
    if days not in (None, *CONTENT_DAYS):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{name} must be one of {', '.join(map(str, CONTENT_DAYS))}, or null.",
            param=name,
        )


def check_networks(networks: str | None) -> None:
    """Raise RequestError for a list of networks that is malformed or too long."""
    if networks is None:
        return
    try:
        parse_networks(networks)
    except ValueError as malformed:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"allowed_ips must be addresses and networks such as 192.0.2.7, 10.0.0.0/8 or "
            f"2001:db8::/32, separated by commas: {malformed}.",
            param="allowed_ips",
        ) from malformed


def check_prompt_policy(text: str | None) -> None:
    """Raise RequestError for a prompt policy with an unknown word."""
    try:
        parse_policy(text, "key")
    except ValueError as unknown:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"prompt_policy must be regions, {NO_TRAINING}, {NO_RETENTION}, separated by commas: "
            f"{unknown}.",
            param="prompt_policy",
        ) from unknown


def check_quotas(text: str | None) -> None:
    """Raise RequestError for quotas that are malformed, repeated or too many."""
    try:
        parse_quotas(text)
    except ValueError as malformed:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "quotas must be limits such as requests/hour=500 or usd/day=5@anthropic/*, separated "
            f"by commas: {malformed}.",
            param="quotas",
        ) from malformed


def check_guardrail_names(text: str | None) -> None:
    """Raise RequestError unless a text lists names of guardrails."""
    if text is not None and not _GUARDRAILS.fullmatch(text):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "guardrails must be names of guardrails in routing.yaml, separated by commas.",
            param="guardrails",
        )


class KeyOption(Struct, frozen=True, kw_only=True):
    """A plain setting's field in the API and option on the command line."""

    option: str
    """Option for `tollgate keys`, without dashes."""
    text: str
    """Description in the API, and help for the option."""
    lowest: int | None = None
    """Minimum; a numeric setting has both bounds."""
    highest: int | None = None
    length_max: int | None = None
    """Maximum number of characters."""
    accepted: Any = None
    """Type of the values that the API accepts, if narrower than the field's type."""


class KeySettings(Struct, frozen=True, kw_only=True):
    """The settings of a key; raises RequestError for an invalid value."""

    label: str
    """The name that people see."""
    tier: Annotated[
        str | None,
        KeyOption(option="tier", text="Tier of routing.yaml.", length_max=_TIER_LENGTH_MAX),
    ] = None
    """Tier in routing.yaml, whose limits apply in addition to the key's own."""
    models: tuple[str, ...] | None = None
    """Globs of the models that the key may use; None allows all."""
    limits_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """Spending limits in nano-dollars; a missing period has no limit."""
    requests_per_minute: Annotated[
        int,
        KeyOption(
            option="rpm",
            text="Requests per minute. A new key has 60, or the rate of its tier, if any.",
            lowest=1,
            highest=RATE_MAX,
        ),
    ] = 60
    """Average rate (GCRA)."""
    burst: Annotated[
        int,
        KeyOption(
            option="burst",
            text="Requests at once after a pause. A new key has 120, or the burst of its "
            "tier, if any.",
            lowest=1,
            highest=RATE_MAX,
        ),
    ] = 120
    tokens_per_minute: Annotated[
        int | None,
        KeyOption(option="tpm", text="Tokens per minute.", lowest=1, highest=_TOKENS_MAX),
    ] = None
    """Tokens per calendar minute; None for no limit."""
    max_cost: Annotated[
        Decimal | None,
        KeyOption(
            option="max-cost",
            text="Highest possible cost of one request, in USD; a request may state a lower one in "
            "x-tollgate-max-cost.",
        ),
    ] = None
    """Highest possible cost of one request in dollars; None for no limit."""
    session_budget: Annotated[
        Decimal | None,
        KeyOption(
            option="session-budget",
            text="Cost of all requests of one session, in USD; a request may state a lower one in "
            "x-tollgate-session-budget. Requests without a session id are refused.",
        ),
    ] = None
    """Spending limit of a session in dollars; None for no limit."""
    session_requests: Annotated[
        int | None,
        KeyOption(
            option="session-requests",
            text="Requests of one session; a request may state fewer in "
            "x-tollgate-session-requests. Requests without a session id are refused.",
            lowest=1,
            highest=RATE_MAX,
        ),
    ] = None
    """Requests of a session; None for no limit."""
    quotas: Annotated[
        str | None,
        KeyOption(
            option="quotas",
            text="Requests, tokens or USD per second, minute, hour, day, week or month, for all "
            "models or those of a glob; comma-separated: requests/hour=500,usd/day=5@anthropic/*.",
            length_max=QUOTAS_LENGTH_MAX,
        ),
    ] = None
    """Limits per window, which count from the moment at which they are set."""
    warn_at: Annotated[
        int | None,
        KeyOption(
            option="warn-at",
            text="Percent of a spending limit from which replies have x-tollgate-limit-warning.",
            lowest=1,
            highest=100,
        ),
    ] = None
    """Percent of a spending limit from which replies warn; None for no warning."""
    concurrency: Annotated[
        int | None,
        KeyOption(
            option="concurrency", text="Requests at the same time.", lowest=1, highest=HOLDS_MAX
        ),
    ] = None
    """Number of concurrent requests; None for no limit."""
    expires_s: int | None = None
    """Unix second from which the key is refused; None if it never expires."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels for grouping spending, such as a team or environment."""
    disabled: bool = False
    """True if requests with the key are refused."""
    content_days: Annotated[
        int | None,
        KeyOption(
            option="content-days",
            text="Days for which prompts and answers are stored: 1, 7, 30 or 90.",
            accepted=ContentDays,
        ),
    ] = None
    """Days for which prompts and answers are stored; None stores nothing."""
    response_days: Annotated[
        int | None,
        KeyOption(
            option="response-days",
            text="Days for which responses are stored, for `previous_response_id`: 1, 7, 30 or 90. "
            "Unset, the workspace's setting applies.",
            accepted=ContentDays,
        ),
    ] = None
    """Days for which responses are stored; None for the workspace's setting."""
    answer_cache: Annotated[
        AnswerSharing | None,
        KeyOption(
            option="answer-cache",
            text="Keys whose identical requests get a stored answer on routes with `cache`: this "
            "key alone (key), or all keys of the workspace with this value (workspace). Unset, no "
            "answer is stored or reused.",
        ),
    ] = None
    """Keys with which the key shares stored answers; None neither stores nor reuses any."""
    team_id: Annotated[
        str | None,
        KeyOption(
            option="team",
            text="Id of the team whose limits also apply. Unset, the member's team applies.",
            length_max=64,
        ),
    ] = None

    member_id: Annotated[
        str | None,
        KeyOption(
            option="member",
            text="Id of the member that the key belongs to, whose limits also apply.",
            length_max=128,
        ),
    ] = None

    allowed_ips: Annotated[
        str | None,
        KeyOption(
            option="allowed-ips",
            text="Addresses and networks from which the key may be used, separated by commas: "
            "192.0.2.7,2001:db8::/32. Unset, only those of the workspace count.",
            length_max=NETWORKS_LENGTH_MAX,
        ),
    ] = None

    usage_on: Annotated[
        UsageOn | None,
        KeyOption(
            option="usage-on",
            text="Frame of chat streams that contains the usage: the finish frame (finish), for "
            "clients that cannot read a frame with empty `choices`, or one more frame after it "
            "(frame). If unset, the workspace's setting applies.",
        ),
    ] = None

    keep_address: Annotated[
        KeptAddress | None,
        KeyOption(
            option="keep-address",
            text="With `last`, each process stores the network address of a use, which is personal "
            "data, at most every ten minutes. If unset, no address is stored.",
        ),
    ] = None

    prompt_policy: Annotated[
        str | None,
        KeyOption(
            option="prompt-policy",
            text="Where prompts may go, separated by commas: eu or ISO 3166 codes of countries, "
            "no_training, no_retention. Providers that do not state what they do get no prompts.",
            length_max=PROMPT_POLICY_LENGTH_MAX,
        ),
    ] = None

    guardrails: Annotated[
        str | None,
        KeyOption(
            option="guardrails",
            text="Guardrails of routing.yaml that also judge these requests, separated by commas. "
            "If the catalog lacks one of them, requests are refused.",
            length_max=GUARDRAILS_LENGTH_MAX,
        ),
    ] = None

    def __post_init__(self) -> None:
        numbers: dict[str, int | None] = {
            name: getattr(self, name)
            for name, setting in PLAIN_SETTINGS.items()
            if setting.offer.lowest is not None
        }
        limits = {f"limits.{period}": limit for period, limit in self.limits_nano_usd.items()}
        limits |= {
            name: nano_usd(amount)
            for name, setting in PLAIN_SETTINGS.items()
            if setting.is_usd and (amount := getattr(self, name)) is not None
        }
        for name, value in {**numbers, **limits}.items():
            if value is not None and value <= 0:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"{name} must be more than 0.", param=name
                )
        check_days("content_days", self.content_days)
        check_days("response_days", self.response_days)
        check_networks(self.allowed_ips)
        check_prompt_policy(self.prompt_policy)
        check_quotas(self.quotas)
        check_guardrail_names(self.guardrails)


class PlainSetting(Struct, frozen=True):
    """A plain setting of KeySettings, with the type of its field."""

    type: Any
    offer: KeyOption

    @property
    def is_optional(self) -> bool:
        """True if the setting may be None."""
        return NoneType in get_args(self.type)

    @property
    def is_usd(self) -> bool:
        """True if the setting is an amount in dollars."""
        return Decimal in get_args(self.type)


def _plain_settings() -> dict[str, PlainSetting]:
    settings = {}
    for name, hint in get_type_hints(KeySettings, include_extras=True).items():
        for offer in getattr(hint, "__metadata__", ()):
            settings[name] = PlainSetting(get_args(hint)[0], offer)
    return settings


PLAIN_SETTINGS: Final[Mapping[str, PlainSetting]] = _plain_settings()
