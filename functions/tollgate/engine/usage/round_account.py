"""Computes the usage and the bill of one round of a generation."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from tollgate.core.events import Grouped
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import BillLine, UsageSource
from tollgate.core.usage import Units, Usage
from tollgate.core.work.base import InputWork, Work
from tollgate.engine.usage.stream_usage import StreamUsage
from tollgate.engine.usage.usage_bound import InputBound, UsageBound
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.price import Price, bill

# Least certain source first: a sum is only as certain as its least certain part.
_NO_SOURCE: Final[UsageSource] = "none"
_WEAKEST_FIRST: Final[tuple[UsageSource, ...]] = ("bounded", "estimated", "provider", _NO_SOURCE)


class RoundAccount:
    """The usage and costs of one round; most generations have only one round.

    `prompt_growth_tokens` is the estimated growth of the prompt since the first round.
    `searches_before` is the number of searches that the provider ran in earlier rounds.
    """

    def __init__(
        self,
        work: Work,
        plan: Plan,
        created_s: int,
        *,
        prompt_growth_tokens: int = 0,
        searches_before: int = 0,
    ) -> None:
        self._work = work
        self._plan = plan
        self._created_s = created_s
        self._growth_tokens = prompt_growth_tokens
        self._searches_before = searches_before
        self._choices = work.answers
        self.streams = [StreamUsage(self._choices)]
        """Streams in the order of their choices, which are divided evenly among them."""
        self._serving: Attempt | None = None

    def serve(self, attempt: Attempt, *, streams: int) -> None:
        """Record the attempt that serves the round, and the number of its streams."""
        self._serving = attempt
        self.streams = [StreamUsage(self._choices // streams) for _ in range(streams)]

    def observe(self, event: Grouped, choice: int) -> None:
        """Count an event from the serving attempt."""
        self.streams[choice * len(self.streams) // self._choices].observe(event)

    @property
    def raw_usages(self) -> list[JsonValue]:
        """Provider's usage objects, one per stream."""
        return [stream.raw_usage for stream in self.streams]

    def measure(self) -> tuple[list[Usage], UsageSource]:
        """Return the usage of each stream, and the least certain source of these."""
        attempt = self._serving
        if attempt is None:
            return [Usage()], "none"
        trace = self._plan.trace
        sizes = [prompt.estimate for prompt in trace.prompts] or [trace.estimated_input_tokens]
        echoed = _echoed_bytes(self._work)
        streams_per_prompt = len(self.streams) // len(sizes)
        measured = [
            stream.measure(
                attempt,
                estimated_input_tokens=sizes[place // streams_per_prompt] + self._growth_tokens,
                output_tokens_max=trace.output_tokens_max,
                echoed_bytes=echoed[place // streams_per_prompt] if echoed else 0,
                inputs=self._input_bound(attempt),
            )
            for place, stream in enumerate(self.streams)
        ]
        usages = [self._within_searches(usage) for usage, _ in measured]
        return usages, weakest_source(source for _, source in measured)

    def bill(self, usages: Iterable[Usage]) -> tuple[BillLine, ...]:
        """Return the bill: each stream at the rates for its prompt size, and the price per request
        once.
        """
        if self._serving is None:
            return ()
        by_price: dict[Price, Usage] = {}
        for usage in usages:
            price = self.price(self._serving, usage)
            if by_price and price not in by_price:
                price = replace(price, request=None)
            by_price[price] = by_price[price].plus(usage) if price in by_price else usage
        return tuple(line for price, usage in by_price.items() for line in bill(usage, price))

    def bound(self, usage: Usage, attempt: Attempt) -> Usage:
        """Return the usage of an attempt that delivered nothing, cut to plausible values."""
        bound = UsageBound.of(
            attempt,
            choices=self._choices,
            output_tokens_max=self._plan.trace.output_tokens_max,
            shown_bytes=0,
            reasons=True,
            inputs=self._input_bound(attempt),
        )
        return bound.apply(usage).fit_parts()

    def price(self, attempt: Attempt, usage: Usage) -> Price:
        """Return the rates at the time of the record, so that its bill can be recalculated."""
        picture = self._plan.trace.picture
        return attempt.prices.at(self._created_s, usage.input_tokens, picture)

    def _within_searches(self, usage: Usage) -> Usage:
        """Return the usage with at most the allowed searches, since some providers exceed these."""
        rounds, searches = self._plan.trace.rounds, usage.web_searches
        if rounds is None or searches is None:
            return usage
        left = max(0, rounds.provider_searches_max - self._searches_before)
        return replace(usage, web_searches=min(searches, left))

    def _input_bound(self, attempt: Attempt) -> InputBound | None:
        """Return the input limits for which money is held; None for a conversation."""
        trace, work = self._plan.trace, self._work
        if not isinstance(work, InputWork):
            return None
        return InputBound(
            tokens_max=min(trace.input_tokens_max, attempt.context_tokens * trace.inputs),
            units=trace.units or Units(),
            units_max=trace.units_max or Units(),
            charged=frozenset(self.price(attempt, Usage()).usd_per_million_pieces),
            likely_output_tokens=work.likely_output_tokens,
            by_medium=work.by_medium,
        )


def weakest_source(sources: Iterable[UsageSource]) -> UsageSource:
    """Return the least certain of the sources."""
    found = {*sources, _NO_SOURCE}
    return next(source for source in _WEAKEST_FIRST if source in found)


def _echoed_bytes(work: Work) -> list[int] | None:
    if isinstance(work, InputWork) or not work.echo:
        return None
    return [len(prompt.encode()) for prompt in work.prompts]
