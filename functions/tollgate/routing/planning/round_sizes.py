"""Computes the maximum cost of a generation with several rounds, for its hold."""

from collections.abc import Iterator

from msgspec import Struct

from tollgate.core.money.amounts import nano_usd
from tollgate.core.records.generation import RoundsBound
from tollgate.routing.planning.output_limit import with_slack
from tollgate.routing.planning.plan import Attempt
from tollgate.routing.planning.planning_request import PlanningRequest


class RoundSize(Struct, frozen=True, kw_only=True):
    """The maximum number of tokens in one round."""

    prompt: int
    output: int


def cost_max_of_rounds(
    attempt: Attempt,
    request: PlanningRequest,
    rounds: RoundsBound,
    *,
    now_s: float,
    context: int,
    answer_max: int,
) -> int:
    """Return the maximum cost of all rounds at an endpoint, with the fees of all tool runs."""
    limit = request.output_tokens_max
    sizes = list_round_sizes(
        rounds,
        prompt=request.input_tokens_max,
        context=context,
        answer_max=answer_max,
        answers_max=None if limit is None else with_slack(limit),
        searches_at_once=attempt.target.native_search is not None
        and rounds.provider_searches_max > 0,
    )
    costs = (attempt.cost_max_nano_usd(now_s, each.prompt, each.output) for each in sizes)
    return rounds.fees_nano_usd + sum(costs) + _searches_nano_usd(attempt, rounds, now_s, context)


def _searches_nano_usd(attempt: Attempt, rounds: RoundsBound, now_s: float, context: int) -> int:
    """Return the maximum cost of searches that the provider runs itself."""
    if attempt.target.native_search is None:
        return 0
    rates = (price.web_search for price in attempt.prices.possible(now_s, context))
    return rounds.provider_searches_max * max(nano_usd(rate) for rate in rates if rate is not None)


def list_round_sizes(
    rounds: RoundsBound,
    *,
    prompt: int,
    context: int,
    answer_max: int,
    answers_max: int | None,
    searches_at_once: bool = False,
) -> Iterator[RoundSize]:
    """Yield the maximum prompt and output of each round.

    A prompt contains the replies and results of all earlier rounds, up to the model's context.
    `answer_max` limits each reply, and `answers_max` limits all replies together. With
    `answers_max`, all output is counted in the last round, because its prompt and its rate may be
    the highest. With `searches_at_once`, even the first prompt may contain results, because the
    provider searches.
    """
    replies_max = rounds.rounds_max * answer_max
    total = replies_max if answers_max is None else min(replies_max, answers_max)
    for number in range(rounds.rounds_max):
        results = rounds.result_tokens if number or searches_at_once else 0
        reply_tokens = min(number * answer_max, total)
        output = answer_max
        if answers_max is not None:
            output = total if number == rounds.rounds_max - 1 else 0
        yield RoundSize(prompt=min(prompt + reply_tokens + results, context), output=output)
