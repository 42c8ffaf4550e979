"""Submits the lines of a piece to a provider's own batches, and waits for the provider.

Before anything is sent, the claim is stored in the batch, the hold is placed under the claim's id,
and both are stored with the lines. A later worker thus finds out whether the provider has the
batch, whose name is the same id. It never submits the lines again.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, json
from msgspec.structs import replace

from tollgate.core.batches import Batch, StepTry, Submission
from tollgate.core.errors import ErrorCode, GatewayError, UpstreamError
from tollgate.engine.batches.line_encoding import EncodedLine, LineEncoding
from tollgate.engine.batches.line_run import WAITS_FOR, LineRun
from tollgate.engine.batches.lines import BatchLine
from tollgate.providers.ports.provider_batches import (
    BatchedAnswer,
    BatchedRequest,
    BatchState,
    NotAccepted,
    NotYetKnown,
    ProviderBatches,
)
from tollgate.routing.planning.batch_planner import BatchPlanner
from tollgate.routing.price import PriceSchedule
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.batches import SubmissionLedger
from tollgate.stores.rules.object_names import batch_folder

_log = logging.getLogger(__name__)

# Lines that the side thread encodes at once.
_GROUP: Final = 100
# Seconds after which a call that a dead worker was sending has arrived or never will.
_ARRIVED_S: Final = 300.0
_RETRY_S: Final = 60.0
# The pause between polls is a quarter of the age of the submission, within these bounds.
_POLL_MIN_S: Final = 60.0
_POLL_MAX_S: Final = 900.0
# Seconds after which a provider that never ends a batch is given up; providers document 24 hours.
_GIVE_UP_S: Final = 48 * 3_600
# Python refuses to convert thousands of digits to a number.
_DIGITS_MAX: Final = 12
_LOGGED_LENGTH_MAX: Final = 100
_LOGGED_RESULTS_MAX: Final = 10
# Number of results twice, or of other batches, after which no more are read.
_STRANGE_MAX: Final = 1_000


class SubmittedLines(Struct, frozen=True, kw_only=True):
    """The stored facts about a submission, by which its lines are billed."""

    hold: Hold
    prices: PriceSchedule
    lines: tuple[BatchLine, ...]
    """The submitted lines, because the file of the batch may be deleted meanwhile."""


class SubmittedPiece:
    """One try's work on a piece whose lines may be submitted to the endpoint's provider."""

    def __init__(
        self,
        run: LineRun,
        ledger: SubmissionLedger,
        endpoint_id: str,
        trial: StepTry,
        *,
        change: Callable[[Submission | None], Awaitable[Batch | None]],
        submission: Submission | None,
    ) -> None:
        """Prepare the work; `change` stores the submission unless the try has lost its lease."""
        self._run = run
        self._ledger = ledger
        self._endpoint_id = endpoint_id
        self._trial = trial
        self._change = change
        self.submission = submission
        """The stored submission of the piece; None until there is one."""
        gateway = run.parser.gateway
        self._gateway = gateway
        self._slug = endpoint_id.partition("/")[0] if submission is None else submission.provider

    async def advance(
        self,
        read_lines: Callable[[], Awaitable[Sequence[BatchLine]]],
        *,
        may_submit: bool,
        is_stopping: bool,
    ) -> float | None:
        """Return the seconds after which to look again, or None once lines can run."""
        submission = self.submission
        if submission is not None and submission.runs_from is not None:
            return None
        if submission is not None and submission.batch_id is not None:
            return await self._poll(submission, submission.batch_id, is_stopping=is_stopping)
        if submission is not None:
            return await self._recover(submission)
        batches = self._batches() if may_submit else None
        if batches is None:
            return await self._leave_to_gateway()
        return await self._submit(batches, await read_lines())

    @property
    def is_given_up(self) -> bool:
        """True if the provider has had the lines for longer than it may."""
        submission = self.submission
        return submission is not None and self._age_s(submission) >= _GIVE_UP_S

    def planner(self, prices: PriceSchedule) -> BatchPlanner:
        """Return the planner that plans the submitted lines at these prices."""
        return BatchPlanner(self._gateway.planner.catalog, self._endpoint_id, prices)

    async def load_accepted(self) -> SubmittedLines | None:
        """Return the stored facts about a batch that the provider has run; None if it has not."""
        submission = self.submission
        return None if submission is None or submission.batch_id is None else await self._load()

    def _age_s(self, submission: Submission) -> float:
        return self._gateway.clock.now_s() - submission.at_s

    async def _load(self) -> SubmittedLines | None:
        """Return the stored facts about the submission; None if nothing can have been sent."""
        if self.submission is None:
            return None
        content = await self._run.objects.get(self._run.batch, _name(self.submission))
        return None if content is None else json.decode(content, type=SubmittedLines)

    async def read_answers(self) -> AsyncGenerator[tuple[int, BatchedAnswer], None]:
        """Yield the number of each submitted line with its answer, once.

        Raises UpstreamError if the results cannot be read, or do not seem to end.
        """
        submission, batches = self.submission, self._batches()
        if submission is None or submission.batch_id is None or batches is None:
            return
        seen, strange = set[int](), 0
        async for answer in batches.read_answers(submission.batch_id):
            name, _, digits = answer.custom_id.rpartition("-")
            is_ours = name == submission.id and len(digits) <= _DIGITS_MAX and digits.isdecimal()
            number = int(digits) if is_ours else None
            if number is None or number in seen:
                strange += 1
                if strange <= _LOGGED_RESULTS_MAX:
                    _log.warning(
                        "batch %s of %s has a result twice, or of another batch: %s",
                        submission.batch_id,
                        submission.provider,
                        answer.custom_id[:_LOGGED_LENGTH_MAX],
                    )
                if strange > _STRANGE_MAX:
                    raise UpstreamError(
                        ErrorCode.PROVIDER_UNAVAILABLE,
                        f"The provider {submission.provider} has results of too many requests.",
                    )
                continue
            seen.add(number)
            yield number, answer

    async def settle(self, submitted: SubmittedLines, cost_nano_usd: int) -> None:
        """Replace the hold of all lines by what they cost."""
        await self._ledger.settle_sum(submitted.hold, cost_nano_usd)

    def _batches(self) -> ProviderBatches | None:
        if self._slug not in self._gateway.planner.catalog.providers:
            return None
        principal = self._run.parser.principal
        load = self._gateway.providers.provider(self._slug, principal).batches
        return None if load is None else load()

    async def _leave_to_gateway(self) -> float | None:
        """Store that the gateway runs the lines, from this try on, and return None."""
        submission = self.submission or Submission(
            id=self._gateway.ids.new_id(), provider=self._slug, at_s=self._gateway.clock.now_s()
        )
        return await self._begin_lines(replace(submission, batch_id=None))

    async def _begin_lines(self, submission: Submission) -> float | None:
        """Store that lines run from this try on, and return None."""
        stored = await self._store(replace(submission, runs_from=self._trial.number))
        return None if stored else _RETRY_S

    async def _store(self, submission: Submission | None) -> bool:
        """Store the submission; return False if the try has lost its lease."""
        if await self._change(submission) is None:
            return False
        self.submission = submission
        return True

    async def _submit(self, batches: ProviderBatches, lines: Sequence[BatchLine]) -> float | None:
        gateway = self._gateway
        encoding = LineEncoding(self._run, self._endpoint_id)
        for first in range(0, len(lines), _GROUP):
            encode = partial(encoding.add, lines[first : first + _GROUP])
            await gateway.side.run(self._run.batch.workspace_id, encode)
        encoded, prices = encoding.lines, encoding.prices
        if prices is None or len(encoded) < encoding.lines_min:
            return await self._leave_to_gateway()
        claim = Submission(id=gateway.ids.new_id(), provider=self._slug, at_s=gateway.clock.now_s())
        if not await self._store(claim):
            return _RETRY_S
        try:
            hold = await self._ledger.hold(
                self._run.parser.principal,
                sum(each.bound_nano_usd for each in encoded),
                claim.id,
                covered=True,
                tier=encoding.tier,
                models=encoding.models,
            )
        except GatewayError as refusal:
            if refusal.code in WAITS_FOR:
                await self._store(None)
                return max(refusal.retry_after_s or 0.0, _RETRY_S)
            return await self._leave_to_gateway()
        if hold.id != claim.id:
            # The write under the claim's id had an unknown outcome; the sweeper releases its hold.
            await self._ledger.settle_sum(hold, 0)
            await self._store(None)
            return _RETRY_S
        submitted = SubmittedLines(
            hold=_bare(hold), prices=prices, lines=tuple(each.line for each in encoded)
        )
        content = json.encode(submitted)
        await self._run.objects.put(self._run.batch, _name(claim), content)
        if not await self._store(claim):
            return _RETRY_S
        return await self._send(batches, claim, submitted, encoded)

    async def _send(
        self,
        batches: ProviderBatches,
        claim: Submission,
        submitted: SubmittedLines,
        encoded: Sequence[EncodedLine],
    ) -> float | None:
        requests = [
            BatchedRequest(
                custom_id=f"{claim.id}-{each.line.number}",
                path=each.wire.path,
                body=each.wire.body,
                headers=each.wire.headers,
            )
            for each in encoded
        ]
        try:
            folder = f"{batch_folder(self._run.batch)}jobs/{claim.id}/"
            batch_id = await batches.submit(claim.id, requests, folder=folder)
        except NotAccepted as refused:
            _log.info("%s accepts no batch %s: %s", self._slug, claim.id, refused.__cause__)
            await self.settle(submitted, 0)
            return await self._leave_to_gateway()
        except UpstreamError as failure:
            _log.warning("it is unknown whether %s has %s: %s", self._slug, claim.id, failure)
            return _ARRIVED_S
        if not await self._store(replace(claim, batch_id=batch_id)):
            # A later try may have given the submission up, while this process was frozen.
            await batches.cancel(batch_id)
        return _POLL_MIN_S

    async def _recover(self, claim: Submission) -> float | None:
        """Find out whether the provider has the batch that an earlier worker was sending."""
        submitted, batches = await self._load(), self._batches()
        if submitted is None:
            return await self._leave_to_gateway()
        age_s = self._age_s(claim)
        if age_s < _ARRIVED_S:
            return _ARRIVED_S - age_s
        batch_id: str | None = None
        try:
            if batches is not None:
                batch_id = await batches.find(
                    claim.id, since_s=claim.at_s, count=len(submitted.lines)
                )
        except (NotYetKnown, UpstreamError) as failure:
            if age_s < _GIVE_UP_S:
                _log.info("%s does not show whether it has %s: %r", self._slug, claim.id, failure)
                return _POLL_MAX_S
        if batch_id is None:
            await self.settle(submitted, 0)
            return await self._leave_to_gateway()
        await self._store(replace(claim, batch_id=batch_id))
        return _POLL_MIN_S

    async def _poll(
        self, submission: Submission, batch_id: str, *, is_stopping: bool
    ) -> float | None:
        age_s = self._age_s(submission)
        batches = self._batches()
        state: BatchState = "running"
        try:
            if batches is not None:
                state = await batches.get_state(batch_id)
                if state == "running" and is_stopping:
                    await batches.cancel(batch_id)
        except UpstreamError as failure:
            _log.warning("batch %s of %s cannot be polled: %s", batch_id, self._slug, failure)
        if state == "ended":
            return await self._begin_lines(submission)
        if state == "running" and age_s < _GIVE_UP_S:
            return min(max(age_s / 4, _POLL_MIN_S), _POLL_MAX_S)
        submitted = await self._load()
        if submitted is not None:
            await self.settle(submitted, 0)
        return await self._leave_to_gateway()


def _name(submission: Submission) -> str:
    """Return the name of a submission's facts among the intermediate results of its batch."""
    return f"submissions/{submission.id}"


def _bare(hold: Hold) -> Hold:
    """Return the part of a hold that its settlement reads."""
    return replace(hold, rate_limit=None, token_limit=None, warning=None, tier=None)
