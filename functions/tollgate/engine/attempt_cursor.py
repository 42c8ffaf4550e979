"""The position in a plan's attempts, as the engine and the simulation of `explain` advance it.

Pure: a cursor makes no attempt. It holds which attempt is due, how long that attempt may take to
begin, and which one follows a failure.
"""

from tollgate.core.errors import UpstreamError
from tollgate.engine import retry
from tollgate.routing.planning.plan import Attempt, Plan


class AttemptCursor:
    """A position in a plan; `depth` is the place, from 0, of the attempt that is due."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._tries = 1
        self.depth = 0

    @property
    def attempt(self) -> Attempt:
        """The attempt that is due."""
        return self._plan.attempts[self.depth]

    def first_token_limit_s(self, remaining_s: float) -> float:
        """Return how many seconds the due attempt may take until its first token.

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
        """Decide what follows a failure of the due attempt; advance if the next attempt follows.

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
