"""The position in a plan's attempts, which the engine and the simulation of `explain` share.

A cursor is pure and makes no attempt itself: it says which attempt is due, how long its first token
may take, and which attempt follows a failure.
"""

from tollgate.core.errors import UpstreamError
from tollgate.engine import retry
from tollgate.routing.planning.plan import Attempt, Plan


class AttemptCursor:
    """A position in a plan; `depth` is the index of the attempt that is due, from 0."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tries = 1
        self.depth = 0

    @property
    def attempt(self) -> Attempt:
        """The attempt that is due."""
        return self._plan.attempts[self.depth]

    def first_token_limit_s(self, remaining_s: float) -> float:
        """Return the seconds that the due attempt may take until its first token.

        That is its configured limit, but no more than an even share of `remaining_s`, the time left
        for all attempts.
        """
        configured_s = self.attempt.timeouts.first_token_s
        attempts_left = len(self._plan.attempts) - self.depth
        if attempts_left == 1:
            # The deadline ends the last attempt, and its error states that the time was up.
            return configured_s
        return min(configured_s, remaining_s / attempts_left)

    def advance(
        self, error: UpstreamError, *, remaining_s: float, jitter: float
    ) -> retry.RetryDecision:
        """Decide what follows a failure of the due attempt, and advance if that is the next
        attempt.

        `jitter` is uniform in [0, 1).
        """
        situation = retry.Situation(
            tries=self._tries,
            another_left=self.depth + 1 < len(self._plan.attempts),
            remaining_s=remaining_s,
            next_on=self._plan.next_on,
        )
        decision = retry.decide(error, situation, self.attempt.retry, jitter)
        self._tries += 1
        if isinstance(decision, retry.Next):
            self.depth, self._tries = self.depth + 1, 1
        return decision
