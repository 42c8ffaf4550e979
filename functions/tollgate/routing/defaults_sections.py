"""Defaults of routing.yaml for routes and endpoints that do not override them."""

from typing import Annotated

from pydantic import Field

from tollgate.core.routing.endpoint_status import CooldownPolicy
from tollgate.providers.ports.base import Timeouts
from tollgate.routing.chains import RetrySection
from tollgate.routing.scalars import Interval, Seconds, Strict, Tokens


class AttemptTimeoutsSection(Strict):
    """Time limits of one attempt."""

    connect_s: Seconds = Field(default=10.0, description="Time to connect, TLS included.")
    first_token_s: Seconds = Field(default=120.0, description="Time until the first content.")
    idle_s: Seconds = Field(default=120.0, description="Longest silence within a reply.")

    @property
    def attempt(self) -> Timeouts:
        """Time limits of each attempt."""
        return Timeouts(
            connect_s=self.connect_s, first_token_s=self.first_token_s, idle_s=self.idle_s
        )


class TimeoutsSection(AttemptTimeoutsSection):
    """Time limits of one attempt, and of a whole reply that is not streamed."""

    non_streamed_total_s: Seconds = Field(
        default=285.0, description="Time for all attempts of a reply that is not streamed."
    )
    """Lambda cuts a connection that is silent for 300 s: docs/decisions/0020."""


class CooldownSection(Strict):
    """Rule by which a failing endpoint rests, which puts it last in every plan."""

    after_failures: Annotated[int, Field(ge=1, le=100)] = Field(
        default=3, description="Failures within `within_s` that make an endpoint rest."
    )
    within_s: Interval = Field(default=60.0, description="Period in which failures are counted.")
    rest_s: Seconds = Field(default=30.0, description="Time for which an endpoint rests.")

    @property
    def policy(self) -> CooldownPolicy:
        """Policy in the type that the stores use."""
        return CooldownPolicy(
            after_failures=self.after_failures, within_s=self.within_s, rest_s=self.rest_s
        )


class DefaultsSection(Strict):
    """Settings of every route and endpoint that does not override them."""

    timeouts: TimeoutsSection = Field(default_factory=TimeoutsSection)
    retry: RetrySection = Field(default_factory=RetrySection)
    cooldown: CooldownSection = Field(default_factory=CooldownSection)
    hold_output_tokens: Tokens = Field(
        default=4096,
        description="Output tokens that are held for a request without a limit of its own. The "
        "provider may answer more.",
    )
    rounds_max: Annotated[int, Field(ge=1, le=20)] = Field(
        default=6,
        description="Most replies of a model within one request that runs server tools.",
    )
    early_commit_after_s: Seconds = Field(
        default=10.0,
        description="Silence after which a stream answers 200 before its first content; 0 for "
        "never.",
    )
    keep_alive_s: Interval = Field(
        default=15.0,
        description="Interval of keep-alive comments in a silent stream that has answered 200.",
    )
