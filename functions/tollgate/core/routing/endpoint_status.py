"""The status of endpoints: cooldowns after failures, measured speeds, and retirement."""

from math import inf
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from tollgate.core.clock import DAY_S

# Enough doublings to reach any maximum from a rest of a second.
_DOUBLINGS_MAX: Final = 10
# Time after which a probe without a result no longer keeps others away: the default limits for
# connecting and for the first token.
PROBE_LASTS_S: Final = 130.0
# Time after the longest rest from which old failures say nothing about an endpoint.
FAILURES_LAST_S: Final = 3_600.0


class CooldownPolicy(Struct, frozen=True, kw_only=True):
    """The rule for an endpoint's cooldown, during which other endpoints are preferred."""

    after_failures: int = 3
    """The number of failures within `within_s` seconds that start a cooldown."""
    within_s: float = 60.0
    rest_s: float = 30.0
    """The length of the first cooldown, which doubles with each probe that fails."""
    rest_max_s: float = 300.0
    """The maximum length of a cooldown that failed probes prolong."""

    @property
    def longest_rest_s(self) -> float:
        """The maximum length of any cooldown."""
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
    """The duration of one answer, or the sum of several."""

    answers: int = 1
    first_token_ms: int
    output_tokens: int = 0
    """Tokens reported by the provider; 0 for an answer without a count."""
    output_ms: int = 0
    """The time from the request to the last token, counted only for answers with a token count."""

    def plus(self, other: "AnswerTime") -> "AnswerTime":
        """Return the sum of two times."""
        return AnswerTime(
            answers=self.answers + other.answers,
            first_token_ms=self.first_token_ms + other.first_token_ms,
            output_tokens=self.output_tokens + other.output_tokens,
            output_ms=self.output_ms + other.output_ms,
        )


class Speed(Struct, frozen=True, kw_only=True):
    """The speed that callers can currently expect of an endpoint."""

    latency_ms: int
    """Milliseconds from the request to the first token."""
    tokens_per_s: float | None = None
    """Output tokens per second over the whole answer; None if no answer had a count of tokens."""


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
