"""Defaults in routing.yaml for all routes and endpoints."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from tollgate.core.prompt_policy import PromptPolicy, check_region
from tollgate.core.routing.endpoint_status import CooldownPolicy, SpeedPolicy
from tollgate.providers.ports.base import Timeouts
from tollgate.routing.chains import RetrySection
from tollgate.routing.scalars import Interval, Seconds, Strict, Tokens


class AttemptTimeoutsSection(Strict):
    """Time limits for one attempt, in seconds."""

    connect_s: Seconds = 10.0
    """Time limit for connecting, including TLS."""
    first_token_s: Seconds = 120.0
    """Time limit until the first content."""
    idle_s: Seconds = 120.0
    """Time limit for each pause within a reply."""

    @property
    def attempt(self) -> Timeouts:
        """Return the limits in the type that transports use."""
        return Timeouts(
            connect_s=self.connect_s, first_token_s=self.first_token_s, idle_s=self.idle_s
        )


class TimeoutsSection(AttemptTimeoutsSection):
    """Time limits for one attempt, and for a non-streamed reply as a whole."""

    # API Gateway drops a connection after 300 s of silence: docs/decisions/0011.
    non_streamed_total_s: Seconds = 285.0
    """Time limit for all attempts at a non-streamed reply."""


class CooldownSection(Strict):
    """The cooldown of failing endpoints, during which they are tried last."""

    after_failures: Annotated[int, Field(ge=1, le=100)] = 3
    """Number of failures within `within_s` that start a cooldown."""
    within_s: Interval = 60.0
    """Time window in which failures are counted, in seconds."""
    rest_s: Seconds = 30.0
    """Length of a cooldown, in seconds. One request then probes the endpoint."""
    rest_max_s: Seconds = 300.0
    """Maximum length of a cooldown, which doubles each time a probe fails. Values below `rest_s`
    have no effect."""

    @property
    def policy(self) -> CooldownPolicy:
        """Return the policy in the type that stores use."""
        return CooldownPolicy(
            after_failures=self.after_failures,
            within_s=self.within_s,
            rest_s=self.rest_s,
            rest_max_s=self.rest_max_s,
        )


def _rising(sizes: tuple[int, ...]) -> tuple[int, ...]:
    if list(sizes) != sorted({*sizes}):
        raise ValueError("must rise")
    return sizes


class SpeedsSection(Strict):
    """The measured speeds by which requests with `provider.sort` choose an endpoint."""

    prompt_tokens: Annotated[tuple[Tokens, ...], Field(max_length=4), AfterValidator(_rising)] = (
        2_000,
        16_000,
    )
    """Upper bounds of the prompt sizes that are measured separately, in estimated tokens, in rising
    order. All larger prompts are measured together.
    """
    samples_min: Annotated[int, Field(ge=1, le=10_000)] = 20
    """Number of recent answers that an endpoint needs before it is compared with others."""
    explore_percent: Annotated[int, Field(ge=0, le=50)] = 2
    """Percentage of sorted requests that try an endpoint with old or few answers first, drawn by
    the id of the generation; 0 for none.
    """

    @property
    def policy(self) -> SpeedPolicy:
        """Return the policy in the type that planner and stores use."""
        return SpeedPolicy(
            prompt_tokens=self.prompt_tokens,
            answers_min=self.samples_min,
            explore_percent=self.explore_percent,
        )


_Region = Annotated[
    str,
    AfterValidator(check_region),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z]{2}$"}),
]


class PromptPolicySection(Strict, json_schema_extra={"minProperties": 1}):
    """Demands that every endpoint must be known to meet before it gets a prompt."""

    regions: Annotated[tuple[_Region, ...], Field(max_length=64)] = ()
    """`eu`, and ISO 3166 codes of countries, in which endpoints may run; empty for anywhere."""
    training: Literal["none"] | None = None
    """`none` leaves out endpoints that may train on prompts."""
    retention: Literal["none"] | None = None
    """`none` leaves out endpoints that may store prompts."""

    @property
    def policy(self) -> PromptPolicy:
        """Return the policy in the type that the planner reads."""
        return PromptPolicy(
            owner="gateway",
            regions=self.regions,
            no_training=self.training == "none",
            no_retention=self.retention == "none",
        )


class DefaultsSection(Strict):
    """Settings for all routes and endpoints that do not override them."""

    timeouts: TimeoutsSection = Field(default_factory=TimeoutsSection)
    retry: RetrySection = Field(default_factory=RetrySection)
    cooldown: CooldownSection = Field(default_factory=CooldownSection)
    speeds: SpeedsSection = Field(default_factory=SpeedsSection)
    prompt_policy: PromptPolicySection | None = None
    hold_output_tokens: Tokens = 4096
    """Output tokens for which money is held if a request sets no limit. The reply may be longer."""
    rounds_max: Annotated[int, Field(ge=1, le=20)] = 6
    """Maximum number of model replies in a request with server tools."""
    early_commit_after_s: Seconds = 10.0
    """Seconds after which a stream sends status 200 before its first content; 0 means never."""
    keep_alive_s: Interval = 15.0
    """Interval between keep-alive comments in a silent stream that has already sent status 200."""
