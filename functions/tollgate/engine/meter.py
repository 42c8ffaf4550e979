"""Observes a generation and builds its record: usage, timing, outcome and bill."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Final, assert_never

from msgspec.structs import replace

from tollgate.core.clock import Clock
from tollgate.core.content import ToolCall
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import GatewayError, UpstreamError
from tollgate.core.events import (
    Ended,
    Grouped,
    Output,
    PartDelta,
    PartDeltas,
    PartEnd,
    Partial,
    PartNote,
    PartStart,
    Started,
    UnknownFields,
    UsageReported,
)
from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import (
    AttemptRecord,
    BillLine,
    Fee,
    GenerationRecord,
    JudgementRecord,
    Outcome,
    ReusedAnswer,
    RunRecord,
    total_nano_usd,
)
from tollgate.core.usage import Usage
from tollgate.engine.forwarded import ForwardedNames
from tollgate.engine.gateway import Call
from tollgate.engine.usage.raw_usage import fit_raw_usage, fit_word
from tollgate.engine.usage.round_account import RoundAccount, weakest_source
from tollgate.providers.ports.base import Target
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.price import bill, bill_fees
from tollgate.stores.ports.base import Hold

# Imported at first use, because only provider errors need this function.
_SHOW_BODY: Final = DottedName[Callable[..., JsonValue]](
    "tollgate.engine.provider_errors:show_error_body"
)
_WITHHOLD: Final = DottedName[Callable[..., str]]("tollgate.engine.withheld:withhold_prompt")

# Maximum lengths of a provider's messages in a record.
PROVIDER_WORDS_LENGTH_MAX: Final = 1000
ALL_WORDS_LENGTH_MAX: Final = 16_000
# Parameters with which a caller requests at most one tool call, and limits the answer.
_SWITCH: Final = "parallel_tool_calls"
_TIER: Final = "service_tier"
_LIMIT: Final = "max_tokens"
RUNS_MAX: Final = 64


class Meter:
    """The usage and costs of one generation. `record` can be called at any time."""

    def __init__(self, clock: Clock, call: Call, plan: Plan, hold: Hold) -> None:
        self._clock = clock
        self._call = call
        self._plan = plan
        self._hold = hold
        self._created_s = int(clock.now_s())
        self._start_s = clock.monotonic_s()
        self._attempt_start_s = self._start_s
        self._attempts: list[AttemptRecord] = []
        self._current: Attempt | None = None
        self._adapted: tuple[str, ...] = ()
        self._forwarded = ForwardedNames()
        self._serving: Attempt | None = None
        self._target: Target | None = None
        self._reused: ReusedAnswer | None = None
        self._started = Started()
        self._first_token_ms: int | None = None
        self._choices = call.parsed.request.answers
        self._rounds = [RoundAccount(call.parsed.request, plan, self._created_s)]
        self._streams = self._rounds[0].streams  # of the current round
        self._fees: list[tuple[int, Fee]] = []  # with the index of the round
        self._runs: list[RunRecord] = []
        self.judgements: dict[tuple[str, str], JudgementRecord] = {}
        """Judgements so far, by guardrail and stage."""
        self._ended: dict[int, Ended] = {}
        # Number of tool calls in each choice.
        self._calls: Counter[int] = Counter()
        # Providers' messages without parts of the prompt, by original message.
        self._withheld: dict[str, str] = {}
        self._failure: GatewayError | None = None
        self._outcome: Outcome = "cancelled"

    def begin_attempt(self, attempt: Attempt, adapted: tuple[str, ...] = ()) -> None:
        """Record the start of an attempt and its adapted options; do nothing in later rounds."""
        if self.committed:
            return
        self._current = attempt
        self._adapted = adapted
        self._attempt_start_s = self._clock.monotonic_s()

    def fail_attempt(self, attempt: Attempt, error: UpstreamError, usage: Usage) -> None:
        """Record an attempt that failed before committing; the operator pays for its usage."""
        self._current = None
        self._attempts.append(
            self._attempt_record(
                attempt,
                error.code.value,
                upstream=error,
                operator_cost_nano_usd=self._reported_cost_nano_usd(
                    self._rounds[-1].bound(usage, attempt), attempt
                ),
            )
        )

    def commit_attempt(self, attempt: Attempt, *, streams: int = 1) -> None:
        """Record the serving attempt; its choices are divided evenly among `streams`, in order."""
        self._serving, self._target = attempt, attempt.target
        self._rounds[-1].serve(attempt, streams=streams)
        self._streams = self._rounds[-1].streams

    def reuse(self, target: Target, adapted: tuple[str, ...], reused: ReusedAnswer) -> None:
        """Record that an earlier answer of an endpoint is sent instead of a new one."""
        self._target, self._adapted, self._reused = target, adapted, reused

    def observe(self, event: Grouped, choice: int = 0) -> None:
        """Record an event of the attempt that serves."""
        # Inlined from `RoundAccount.observe`, because this line runs for every event.
        self._streams[choice * len(self._streams) // self._choices].observe(event)
        match event:
            case PartDelta() | PartDeltas() | Output() | Partial():
                if self._first_token_ms is None:
                    self._first_token_ms = self._since_ms(self._start_s)
            case PartStart(part=part):
                if self._first_token_ms is None:
                    self._first_token_ms = self._since_ms(self._start_s)
                if isinstance(part, ToolCall):
                    self._calls[choice] += 1
            case Started():
                self._started = event
            case UsageReported(service_tier=str(tier)):
                self._started = replace(self._started, service_tier=tier)
            case Ended():
                self.note_end(event, choice)
            case UnknownFields():
                self._forwarded.note(event)
            case UsageReported() | PartNote() | PartEnd():
                pass
            case _:
                assert_never(event)

    def observe_unseen(self, event: Grouped, choice: int = 0) -> None:
        """Record an event that is not forwarded to the caller, such as a call to a server tool."""
        self._rounds[-1].observe(event, choice)

    def note_end(self, ended: Ended, choice: int = 0) -> None:
        """Record that a choice has ended for the caller; after the last, the outcome is `ok`."""
        self._ended[choice] = ended
        if len(self._ended) == self._choices:
            self._outcome = "ok"

    def begin_round(self, *, prompt_growth_tokens: int) -> None:
        """Record the start of a round; `prompt_growth_tokens` is how much longer its prompt is than
        the first round's.
        """
        account = RoundAccount(
            self._call.parsed.request,
            self._plan,
            self._created_s,
            prompt_growth_tokens=prompt_growth_tokens,
            output_before=self.output_tokens,
            searches_before=self._sum("web_searches"),
        )
        self._rounds.append(account)
        self._streams = account.streams

    def prompt_cost_nano_usd(self, prompt_growth_tokens: int) -> int:
        """Estimate the cost of a prompt that has grown by this much since the first round."""
        if self._serving is None:
            return 0
        tokens = self._plan.trace.estimated_input_tokens + prompt_growth_tokens
        return self._reported_cost_nano_usd(Usage(uncached_input_tokens=tokens), self._serving)

    def note_run(self, run: RunRecord) -> None:
        """Record a tool run; runs after the first RUNS_MAX are dropped."""
        if len(self._runs) < RUNS_MAX:
            self._runs.append(run)

    @property
    def round_number(self) -> int:
        """Number of the current round, from 1."""
        return len(self._rounds)

    @property
    def passes_limit(self) -> bool:
        """True if the provider has delivered more output than the caller's limit allows."""
        return self._rounds[-1].passes_limit

    @property
    def output_tokens(self) -> int:
        """Output tokens of all rounds, as far as they are known."""
        return self._sum("output_tokens")

    def _sum(self, unit: str) -> int:
        """Return the sum of one usage field over all rounds so far."""
        measured = (account.measure()[0] for account in self._rounds)
        return sum(getattr(usage, unit) or 0 for usages in measured for usage in usages)

    def withhold(self, words: str) -> str:
        """Return a message without the prompt; cached, because a comparison may take 2 s."""
        shown = self._withheld.get(words)
        if shown is None:
            shown = self._withheld[words] = _WITHHOLD()(words, self._call.parsed.request)
        return shown

    def fail(self, error: GatewayError) -> None:
        """Record a failure, which costs the caller nothing; remove the prompt from the error."""
        if isinstance(error, UpstreamError) and error.quoted:
            shown = self.withhold(error.quoted)
            error.message = error.message.replace(error.quoted, shown)
        if isinstance(error, UpstreamError) and error.body and self._call.parsed.shows_provider:
            error.provider_body = _SHOW_BODY()(error.body, self._call.parsed.request)
        self._failure = error
        self._outcome = "error"

    def cut(self, error: GatewayError) -> None:
        """Record that the deadline ended the generation; the caller pays for what was delivered."""
        self._failure = error
        self._outcome = "cancelled"

    def replace_hold(self, hold: Hold) -> None:
        """Replace the hold by a larger one."""
        self._hold = hold

    def charge(self, fee: Fee) -> None:
        """Record a fee, such as for a tool run; the caller pays it unless the generation fails."""
        self._fees.append((len(self._rounds) - 1, fee))

    def cost_nano_usd(self) -> int:
        """Return the cost of the generation in nano-dollars if it ended now."""
        return total_nano_usd(self._bill(account.measure()[0] for account in self._rounds))

    @property
    def hold(self) -> Hold:
        """Money that is held for the generation."""
        return self._hold

    @property
    def created_s(self) -> int:
        """Unix time in seconds at which the generation was admitted."""
        return self._created_s

    @property
    def committed(self) -> bool:
        """True once an attempt has reached its commit point."""
        return self._serving is not None

    def record(self) -> GenerationRecord:
        """Return the record so far; until the generation ends, the outcome is `cancelled`."""
        measured = [account.measure() for account in self._rounds]
        usage = reduce(Usage.plus, (each for usages, _ in measured for each in usages))
        several = len(self._rounds) > 1
        billed = self._bill(usages for usages, _ in measured)
        lines = billed if self._outcome != "error" else ()
        target = self._target
        ended = self._ended.get(min(self._ended, default=0))
        return GenerationRecord(
            id=self._hold.id,
            created_s=self._created_s,
            workspace_id=self._hold.workspace_id,
            key_id=self._hold.key_id,
            outcome=self._outcome,
            streamed=self._call.parsed.stream,
            catalog_sha=self._plan.catalog_sha,
            trace=self._plan.trace,
            model=target.model if target else None,
            provider=target.provider if target else None,
            upstream_model=target.upstream_model if target else None,
            upstream_id=fit_word(self._started.upstream_id),
            finish=ended.finish if ended else None,
            raw_finish=fit_word(ended.raw_finish) if ended else None,
            withheld_calls=self._withheld_calls(),
            service_tier=fit_word(self._started.service_tier),
            error=self._failure.code.value if self._failure else None,
            usage=usage,
            usage_source=weakest_source(source for _, source in measured),
            cost_nano_usd=total_nano_usd(lines),
            held_nano_usd=self._hold.wallet_nano_usd,
            limit_warning=self._hold.warning.text if self._hold.warning else None,
            shard=self._hold.shard,
            slices=self._hold.slices,
            lines=lines,
            rounds=tuple(reduce(Usage.plus, each) for each, _ in measured) if several else (),
            runs=tuple(self._runs),
            judgements=tuple(self.judgements.values()),
            attempts=(*self._attempts, *self._last_attempt(usage, billed)),
            reused=self._reused,
            raw_usage=fit_raw_usage([raw for each in self._rounds for raw in each.raw_usages]),
            duration_ms=self._since_ms(self._start_s),
            first_token_ms=self._first_token_ms,
            ingress_format=self._call.ingress_format,
            client_request_id=self._call.client_request_id,
            user=self._call.parsed.request.user,
            key_label=self._call.principal.label,
            labels=self._call.principal.labels,
            caller_labels=self._call.labels,
            api_gateway_request_id=fit_word(self._call.platform_ids.api_gateway_request_id),
            lambda_request_id=fit_word(self._call.platform_ids.lambda_request_id),
            adapted=(*self._call.parsed.ignored, *self._all_adapted()),
            forwarded=self._forwarded.names(self._call, self._serving, self._adapted),
        )

    def _all_adapted(self) -> tuple[str, ...]:
        """Return the adapted options, together with those that the provider ignored."""
        ignored = {
            _SWITCH: self._withheld_calls() > 0,
            _LIMIT: any(account.passes_limit for account in self._rounds),
            _TIER: any(account.is_other_tier for account in self._rounds),
        }
        new = (name for name, is_so in ignored.items() if is_so and name not in self._adapted)
        return (*self._adapted, *new)

    def _withheld_calls(self) -> int:
        single = self._call.parsed.request.wants_single_call
        return self._calls.total() - len(self._calls) if single else 0

    def _bill(self, measured: Iterable[list[Usage]]) -> tuple[BillLine, ...]:
        """Return the bill lines round by round, each round followed by its fees."""
        lines: list[BillLine] = []
        for place, (account, usages) in enumerate(zip(self._rounds, measured, strict=True)):
            round_lines = account.bill(usages)
            if fees := [fee for caused_by, fee in self._fees if caused_by == place]:
                round_lines = (*round_lines, *bill_fees(fees))
            several = len(self._rounds) > 1
            lines += (replace(line, round=place + 1) if several else line for line in round_lines)
        return tuple(lines)

    def _last_attempt(self, usage: Usage, lines: tuple[BillLine, ...]) -> tuple[AttemptRecord, ...]:
        """Return the record of the serving or current attempt; if it failed, the operator pays for
        it.
        """
        attempt = self._serving or self._current
        if attempt is None:
            return ()
        error = self._failure.code.value if self._failure else None
        if self._serving is None and error is None:
            error = self._outcome
        # The operator pays what the caller would have paid, including earlier rounds and tool runs.
        ours = self._outcome == "error" and usage != Usage()
        return (
            self._attempt_record(
                attempt,
                error,
                upstream=self._failure if isinstance(self._failure, UpstreamError) else None,
                operator_cost_nano_usd=total_nano_usd(lines) if ours else 0,
            ),
        )

    def _attempt_record(
        self,
        attempt: Attempt,
        error: str | None,
        *,
        upstream: UpstreamError | None,
        operator_cost_nano_usd: int,
    ) -> AttemptRecord:
        words = upstream.provider_words if upstream else ""
        return AttemptRecord(
            model=attempt.target.model,
            provider=attempt.target.provider,
            error=error,
            status=upstream.status if upstream else None,
            duration_ms=self._since_ms(self._attempt_start_s),
            operator_cost_nano_usd=operator_cost_nano_usd,
            provider_words=self._keep_words(words) if words else "",
            service_tier=attempt.service_tier,
        )

    def _keep_words(self, words: str) -> str:
        """Return a provider's message without words of the prompt, cut to the maximum length."""
        used_length = sum(len(attempt.provider_words) for attempt in self._attempts)
        room = min(PROVIDER_WORDS_LENGTH_MAX, ALL_WORDS_LENGTH_MAX - used_length)
        return self.withhold(words)[:room]

    def _reported_cost_nano_usd(self, usage: Usage, attempt: Attempt) -> int:
        """Return the cost of the reported usage at an attempt's price; 0 if none was reported."""
        if usage == Usage():
            return 0
        price = self._rounds[-1].price(attempt, usage, attempt.service_tier)
        return total_nano_usd(bill(usage, price))

    def _since_ms(self, start_s: float) -> int:
        return round((self._clock.monotonic_s() - start_s) * 1000)
