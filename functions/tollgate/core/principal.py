"""The authenticated caller."""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct, field

from tollgate.core.limits import AboveKey
from tollgate.core.prompt_policy import PromptPolicy, parse_policy
from tollgate.core.quotas import Quota

# The label that names the member of a key, or the member for whom a key that belongs to nobody is
# used.
MEMBER_LABEL: Final = "member"
# The maximum length of identity tokens, which callers exchange for sessions.
TOKEN_LENGTH_MAX: Final = 16_384
KeyRole = Literal["inference", "management", "read"]
# The role of a member, which all of the member's sessions have.
MemberRole = Literal["owner", "admin", "developer", "billing", "viewer"]
# The role of a secret that the console's playground opens for its caller.
PlaygroundRole = Literal["playground"]
PLAYGROUND: Final[PlaygroundRole] = "playground"
Role = KeyRole | MemberRole | PlaygroundRole
# The label with the source of generations that no program requested, such as PLAYGROUND.
SOURCE_LABEL: Final = "source"
# The origin of a generation's request: the console's playground, or any other program.
GenerationSource = Literal["api", "playground"]
# `positive` admits a request while any balance is left, `covered` only if the balance covers the
# request's maximum cost.
Admission = Literal["positive", "covered"]
# The frame of a stream that contains the usage: the finish frame, or an additional frame after it.
UsageOn = Literal["finish", "frame"]
# The keys whose identical requests may get the same answer: this key, or those of its workspace
# that share answers as well.
AnswerSharing = Literal["key", "workspace"]
# The kinds of network addresses of a key's callers that can be stored.
KeptAddress = Literal["last"]


def generation_source(caller_labels: Mapping[str, str]) -> GenerationSource:
    """Return the source of a generation whose caller has these labels."""
    return PLAYGROUND if caller_labels.get(SOURCE_LABEL) == PLAYGROUND else "api"


def parse_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


class LimitLevel(Struct, frozen=True, kw_only=True):
    """A member or team against whose limits a request is counted."""

    level: AboveKey
    id: str
    limited: bool = False
    """False if the level has no limits that a hold must count."""
    models: tuple[str, ...] | None = None
    """Globs of the model slugs that the level may use; None allows all."""
    slices: int = 1
    """The number of slices over which the level's state is spread."""
    prompt_policy: str | None = None
    """The level's prompt policy; None for none."""
    guardrails: str | None = None
    """Names of guardrails for the level's requests, separated by commas; None for none."""


class Principal(Struct, frozen=True, kw_only=True):
    """A key that exists, is enabled and has not expired."""

    key_id: str
    workspace_id: str
    role: Role
    label: str
    tier: str | None = None
    models: tuple[str, ...] | None = None
    """Globs of the model slugs that the key may use; None allows all."""
    shards: int = 1
    """The number of wallet items over which the workspace's money is spread."""
    labels: Mapping[str, str] = field(default_factory=dict)
    admission: Admission | None = None
    """The workspace's own rule for holds; None uses the catalog's."""
    old_secret: bool = False
    """True if the caller used the secret that was valid before the key's last rotation."""
    content_days: int | None = None
    """Days for which requests and answers are stored; None stores none."""
    response_days: int | None = None
    """Days for which responses are stored for later requests; None stores none."""
    usage_on: UsageOn | None = None
    """The frame of chat streams that contains the usage, unless the request sets `usage_on`."""
    team_id: str | None = None
    """The team of the key, or else the team of its member."""
    member_id: str | None = None
    levels: tuple[LimitLevel, ...] = ()
    """The member and the team, in the order in which their limits are checked."""
    allowed_ips: str | None = None
    """The networks from which the key may be used, separated by commas; None allows all."""
    workspace_ips: str | None = None
    """The networks from which the keys and sessions of the workspace may be used."""
    cost_max_nano_usd: int | None = None
    """The highest possible cost of one request; None for no limit."""
    session_nano_usd: int | None = None
    """The highest cost of all requests of one session; None for no limit."""
    session_requests_max: int | None = None
    """The requests of one session; None for no limit."""
    answer_sharing: AnswerSharing | None = None
    """The keys with which the key shares stored answers; None neither stores nor reuses any."""
    key_quotas: tuple[Quota, ...] = ()
    """The key's limits per window, for all or some models."""
    warns_from_percent: int | None = None
    """Percent of a spending limit from which replies warn; None for no warning."""
    kept_address: KeptAddress | None = None
    """The kind of callers' addresses that is stored; None for none."""
    key_policy: str | None = None
    """The key's prompt policy; None for none."""
    key_guardrails: str | None = None
    """Names of guardrails for the key's requests, separated by commas; None for none."""
    work_policies: tuple[PromptPolicy, ...] = ()
    """The prompt policies of the request on whose behalf the gateway calls another model."""
    session: bool = False
    """True if the caller signed in, in which case `role` is the member's role."""

    @property
    def prompt_policies(self) -> tuple[PromptPolicy, ...]:
        """The prompt policies of the levels and the key, all of which apply."""
        of_levels = [parse_policy(each.prompt_policy, each.level) for each in self.levels]
        policies = (*of_levels, parse_policy(self.key_policy, "key"), *self.work_policies)
        return tuple(each for each in policies if each is not None)

    def policies_on_behalf(self, stated: PromptPolicy | None) -> tuple[PromptPolicy, ...]:
        """Return the `work_policies`, with the policy that the request states, if any."""
        return self.work_policies if stated is None else (*self.work_policies, stated)

    @property
    def guardrails(self) -> frozenset[str]:
        """The guardrails that the levels and the key add to those of `routing.yaml`."""
        stated = (*(each.guardrails for each in self.levels), self.key_guardrails)
        return frozenset(name for each in stated for name in parse_names(each))

    @property
    def owner(self) -> str | None:
        """The member that owns what the caller creates; None if there is none.

        A key that belongs to nobody but has the label `member` creates objects for that member.
        """
        return self.member_id or self.labels.get(MEMBER_LABEL)

    @property
    def level_models(self) -> tuple[tuple[str, ...], ...]:
        """The globs of each level that has any; a model must match a glob of every such level."""
        return tuple(level.models for level in self.levels if level.models is not None)
