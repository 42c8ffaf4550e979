"""How the attempts of a plan follow each other: what the engine does, and what `explain` imagines.

Pure: it makes no attempt. It says which one is due, how long that may take, and where a failure
leads.
"""

from tollgate.core.errors import UpstreamError
from tollgate.engine import retry
from tollgate.routing.planning.plan import Attempt, Plan


class AttemptCursor:
    """One way through a plan; `depth` is the place of the attempt that is due."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tries = 1
        self.depth = 0

    @property
    def attempt(self) -> Attempt:
        """The attempt that is due."""
        return self._plan.attempts[self.depth]

    def first_token_limit_s(self, remaining_s: float) -> float:
        """How long it may take to begin: no longer than an even share of what is left."""
        configured_s = self.attempt.timeouts.first_token_s
        attempts_left = len(self._plan.attempts) - self.depth
        if attempts_left == 1:
            # The deadline ends the last one, and says so in its own words.
            return configured_s
        return min(configured_s, remaining_s / attempts_left)

    def failed(
        self, error: UpstreamError, *, remaining_s: float, jitter: float
    ) -> retry.RetryDecision:
        """What follows a failure of the attempt that was due; `jitter` is uniform in [0, 1)."""
        situation = retry.Situation(
            tries=self._tries,
            another_left=self.depth + 1 < len(self._plan.attempts),
            remaining_s=remaining_s,
            next_on=self._plan.next_on,
        )
        verdict = retry.decide(error, situation, self.attempt.retry, jitter)
        self._tries += 1
        if isinstance(verdict, retry.Next):
            self.depth, self._tries = self.depth + 1, 1
        return verdict
