"""A cursor over the attempts of a plan. The engine uses it to send requests, and `explain` to
simulate them.
"""

from tollgate.core.errors import UpstreamError
from tollgate.engine import retry
from tollgate.routing.planning.plan import Attempt, Plan


class AttemptCursor:
    """Cursor over a plan; `depth` is the index of the current attempt, from 0."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tries = 1
        self.depth = 0

    @property
    def attempt(self) -> Attempt:
        """Current attempt."""
        return self._plan.attempts[self.depth]

    def first_token_limit_s(self, remaining_s: float) -> float:
        """Return the time limit, in seconds, for the first token of the current attempt.

        This is the configured limit, but never more than an even share of the remaining time.
        """
        configured_s = self.attempt.timeouts.first_token_s
        attempts_left = len(self._plan.attempts) - self.depth
        if attempts_left == 1:
            # The last attempt may use all of the remaining time, because the request's deadline
            # ends it anyway.
            return configured_s
        return min(configured_s, remaining_s / attempts_left)

    def advance(
        self, error: UpstreamError, *, remaining_s: float, jitter: float
    ) -> retry.RetryDecision:
        """Return the decision after a failure, and advance the cursor if the decision is `Next`."""
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
