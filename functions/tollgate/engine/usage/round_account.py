"""Computes the usage and the bill of one round of a generation."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from tollgate.core.events import Grouped
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import BillLine, PromptTokens, UsageSource
from tollgate.core.usage import Units, Usage
from tollgate.core.work.base import InputWork, Work
from tollgate.engine.usage.prompt_bound import prompt_tokens_max
from tollgate.engine.usage.stream_usage import StreamUsage
from tollgate.engine.usage.usage_bound import InputBound, UsageBound
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.price import Price, bill

# Least certain source first, because a sum is only as certain as its least certain part.
_NO_SOURCE: Final[UsageSource] = "none"
_WEAKEST_FIRST: Final[tuple[UsageSource, ...]] = ("bounded", "estimated", "provider", _NO_SOURCE)


class RoundAccount:
    """The usage and costs of one round; most generations have only one.

    `prompt_growth_tokens` is the estimated growth of the prompt since the first round.
    `output_before` and `searches_before` are the output tokens and the provider's searches in
    earlier rounds.
    """

    def __init__(
        self,
        work: Work,
        plan: Plan,
        created_s: int,
        *,
        prompt_growth_tokens: int = 0,
        output_before: int = 0,
        searches_before: int = 0,
    ) -> None:
        self._work = work
        self._plan = plan
        self._created_s = created_s
        self._growth_tokens = prompt_growth_tokens
        self._output_before = output_before
        self._searches_before = searches_before
        self._choices = work.answers
        trace = plan.trace
        whole = PromptTokens(estimate=trace.estimated_input_tokens, most=trace.input_tokens_max)
        self._prompts = trace.prompts or (whole,)
        self._echoed = _echoed_bytes(work) or [0] * len(self._prompts)
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
        """Return the usage of each stream, and the least certain of their sources."""
        attempt = self._serving
        if attempt is None:
            return [Usage()], "none"
        measured = [
            stream.measure(
                attempt,
                estimated_input_tokens=prompt.estimate + self._growth_tokens,
                prompt_tokens_max=self._prompt_tokens_max(attempt, prompt),
                output_tokens_max=self._output_tokens_max(attempt),
                echoed_bytes=echoed_bytes,
                inputs=self._input_bound(attempt),
            )
            for stream, prompt, echoed_bytes in self._streams_of_prompts()
        ]
        usages = [self._within_searches(usage) for usage, _ in measured]
        return usages, weakest_source(source for _, source in measured)

    @property
    def passes_limit(self) -> bool:
        """True if a stream has delivered more than the caller's output limit allows."""
        attempt = self._serving
        if attempt is None or (limit := self._output_tokens_max(attempt)) is None:
            return False
        return any(
            stream.passes(limit, echoed_bytes)
            for stream, _, echoed_bytes in self._streams_of_prompts()
        )

    def bill(self, usages: Iterable[Usage]) -> tuple[BillLine, ...]:
        """Return the bill: each stream at the rates for its prompt size, and the price per request
        once.
        """
        if self._serving is None:
            return ()
        by_rates: dict[tuple[Price, str | None], Usage] = {}
        for stream, usage in zip(self.streams, usages, strict=True):
            tier = self._serving.billed_tier(stream.service_tier)
            price = self.price(self._serving, usage, tier)
            if by_rates and (price, tier) not in by_rates:
                price = replace(price, request=None)
            sum_so_far = by_rates.get((price, tier))
            by_rates[price, tier] = usage if sum_so_far is None else sum_so_far.plus(usage)
        return tuple(
            replace(line, service_tier=tier) if tier else line
            for (price, tier), usage in by_rates.items()
            for line in bill(usage, price)
        )

    @property
    def is_other_tier(self) -> bool:
        """True if the provider reported another service tier than was requested."""
        attempt = self._serving
        return attempt is not None and any(
            attempt.is_other_tier(stream.service_tier) for stream in self.streams
        )

    def bound(self, usage: Usage, attempt: Attempt) -> Usage:
        """Return the usage of an attempt that delivered nothing, limited to plausible values."""
        largest = max(self._prompts, key=lambda prompt: prompt.most)
        bound = UsageBound.of(
            attempt,
            choices=self._choices,
            prompt_tokens_max=self._prompt_tokens_max(attempt, largest),
            output_tokens_max=self._output_tokens_max(attempt),
            shown_bytes=0,
            reasons=True,
            inputs=self._input_bound(attempt),
        )
        return bound.apply(usage).fit_parts()

    def price(self, attempt: Attempt, usage: Usage, tier: str | None = None) -> Price:
        """Return the rates that applied when the record was written, so that its bill can be
        recalculated.
        """
        picture = self._plan.trace.picture
        return attempt.schedule(tier).at(self._created_s, usage.input_tokens, picture)

    def _streams_of_prompts(self) -> Iterator[tuple[StreamUsage, PromptTokens, int]]:
        """Yield each stream with its prompt, and the number of bytes of the prompt that
        it repeats.
        """
        streams_per_prompt = len(self.streams) // len(self._prompts)
        for place, stream in enumerate(self.streams):
            prompt = place // streams_per_prompt
            yield stream, self._prompts[prompt], self._echoed[prompt]

    def _prompt_tokens_max(self, attempt: Attempt, prompt: PromptTokens) -> int:
        work = self._work
        if isinstance(work, InputWork):
            # The bound on inputs applies instead.
            return attempt.context_tokens
        return prompt_tokens_max(
            attempt,
            work,
            self._plan.trace,
            largest_tokens=prompt.most,
            growth_tokens=self._growth_tokens,
        )

    def _output_tokens_max(self, attempt: Attempt) -> int | None:
        """Return what is left of the caller's output limit in tokens, or of the model's if that is
        lower.
        """
        limit = self._plan.trace.output_tokens_max
        if isinstance(self._work, InputWork):
            return None
        if limit is None:
            # A request with a ceiling holds the cost of the longest answer.
            return None if self._plan.ceiling_nano_usd is None else attempt.longest_output
        return attempt.target.limited(max(0, limit - self._output_before))

    def _within_searches(self, usage: Usage) -> Usage:
        """Return the usage with at most the allowed number of searches, because some providers
        exceed it.
        """
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
    """Return the least certain source."""
    found = {*sources, _NO_SOURCE}
    return next(source for source in _WEAKEST_FIRST if source in found)


def _echoed_bytes(work: Work) -> list[int] | None:
    if isinstance(work, InputWork) or not work.echo:
        return None
    return [len(prompt.encode()) for prompt in work.prompts]
