"""The status of endpoints: cooldowns after failures, measured speeds, and retirement."""

from collections.abc import Sequence
from math import inf
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from tollgate.core.clock import DAY_S

# Ten doublings turn a cooldown of a second into more than the longest one allowed.
_DOUBLINGS_MAX: Final = 10
# Time after which a probe without a result is given up, and another may begin: the sum of the
# default limits for connecting and for the first token.
PROBE_LASTS_S: Final = 130.0
# Failures are forgotten when they are older than the longest cooldown and this time together.
FAILURES_LAST_S: Final = 3_600.0


class CooldownPolicy(Struct, frozen=True, kw_only=True):
    """The rule for an endpoint's cooldown, during which other endpoints are preferred."""

    after_failures: int = 3
    """The number of failures within `within_s` seconds that start a cooldown."""
    within_s: float = 60.0
    rest_s: float = 30.0
    """The length of the first cooldown; each failed probe doubles the next one."""
    rest_max_s: float = 300.0
    """The maximum length of a doubled cooldown."""

    @property
    def longest_rest_s(self) -> float:
        """The length of the longest cooldown that this policy allows."""
        return max(self.rest_s, self.rest_max_s)

    def rest_after(self, probes: int) -> float:
        """Return the length of a cooldown after this number of probes."""
        return min(self.rest_s * 2.0 ** min(probes, _DOUBLINGS_MAX), self.longest_rest_s)


KeyFault: TypeAlias = Literal["absent", "rejected"]
"""The fault of a provider's key: none was found, or the provider rejected the key."""

# After this time without another failure, a fault no longer says anything about the key.
FAULT_LASTS_S: Final = DAY_S


class KeyNote(Struct, frozen=True):
    """A fault of a provider's key, as the last request to an endpoint found it."""

    fault: KeyFault
    seen_s: int
    """Unix second of that request."""


class AnswerTime(Struct, frozen=True, kw_only=True):
    """The duration and tokens of one answer, or the sum of several."""

    answers: int = 1
    first_token_ms: int
    output_tokens: int = 0
    """Tokens reported by the provider; 0 for an answer without a count."""
    output_ms: int = 0
    """The time from the request to the last token, counted only for answers with a token count."""
    prompt_tokens: int = 0
    """Prompt tokens reported by the provider; 0 for an answer without a count."""
    cached_tokens: int = 0
    """The part of `prompt_tokens` that the provider found in its cache."""

    def plus(self, other: "AnswerTime") -> "AnswerTime":
        """Return the sum of two times."""
        return AnswerTime(
            answers=self.answers + other.answers,
            first_token_ms=self.first_token_ms + other.first_token_ms,
            output_tokens=self.output_tokens + other.output_tokens,
            output_ms=self.output_ms + other.output_ms,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
        )


class Speed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The speed and the share of cached prompt tokens that callers can expect of an endpoint."""

    latency_ms: int
    """Milliseconds from the request to the first token."""
    tokens_per_s: float | None = None
    """Output tokens per second over the whole answer; None if no answer had a count of tokens."""
    output_tokens: int = 0
    """Average output tokens of an answer."""
    cached_share: float | None = None
    """The cached share of the prompt tokens; None if the provider reported no prompt tokens."""
    answers: int = 0
    """Number of measured answers; older ones have less weight."""
    since_s: int = 0
    """Unix second at which the earliest window that counts began."""


def average_speed(speeds: Sequence[Speed]) -> Speed | None:
    """Return the average of measurements, weighted by their answers; None if there are none."""
    if len(speeds) < 2:
        return speeds[0] if speeds else None
    counted = [(speed.tokens_per_s, speed.answers) for speed in speeds if speed.tokens_per_s]
    answers = sum(speed.answers for speed in speeds)
    return Speed(
        latency_ms=round(sum(each.latency_ms * each.answers for each in speeds) / max(answers, 1)),
        tokens_per_s=sum(rate * number for rate, number in counted)
        / max(sum(number for _, number in counted), 1)
        if counted
        else None,
        answers=answers,
        since_s=max(speed.since_s for speed in speeds),
    )


class SpeedPolicy(Struct, frozen=True, kw_only=True):
    """The rule by which measured speeds order the endpoints of a model."""

    prompt_tokens: tuple[int, ...] = (2_000, 16_000)
    """The upper bounds of the prompt sizes that are measured separately, in estimated tokens."""
    answers_min: int = 20
    """The number of answers that an endpoint needs before it is compared with others."""
    explore_percent: int = 2
    """The share of sorted requests that try an endpoint with old or few answers first."""

    def measured_id(self, endpoint_id: str, prompt_tokens: int) -> str:
        """Return the id of an endpoint's measurements for prompts of this size."""
        for size in self.prompt_tokens:
            if prompt_tokens <= size:
                return f"{endpoint_id} <={size}"
        return endpoint_id

    def measured_ids(self, endpoint_id: str) -> tuple[str, ...]:
        """Return the ids of an endpoint's measurements, one for each range of prompt sizes."""
        return (*(f"{endpoint_id} <={size}" for size in self.prompt_tokens), endpoint_id)


class Lifecycle(Struct, frozen=True, kw_only=True):
    """The dates on which a model is retired at an endpoint, in Unix seconds; infinite
    if unknown.
    """

    notice_s: float = inf
    """The time from which replies announce the retirement."""
    deprecated_s: float = inf
    retires_s: float = inf
    """The time from which the endpoint gets no requests."""
    successor: str | None = None
    """The slug of the model to use instead."""


ENDLESS: Final = Lifecycle()
