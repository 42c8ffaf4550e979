"""Bills lines that a provider has run in a batch: each is a generation whose answer is here."""

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.clock import Deadline
from tollgate.core.errors import GatewayError
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.service_tiers import BATCH_TIER
from tollgate.engine.batches.line_run import KeepAnswer, LineRun, Undecided
from tollgate.engine.batches.lines import BatchLine
from tollgate.engine.batches.provider_answers import (
    GivenAnswer,
    HeldPart,
    with_answer,
    without_rules,
)
from tollgate.engine.batches.results import LineResult
from tollgate.providers.ports.provider_batches import BatchedAnswer
from tollgate.routing.planning.batch_planner import BatchPlanner
from tollgate.stores.ports.base import Hold, Ledger
from tollgate.stores.ports.batches import LineRecords


class AnsweredLines(Struct, frozen=True, kw_only=True):
    """The lines of a submission, of which the provider's answers have arrived."""

    run: LineRun
    records: LineRecords
    planner: BatchPlanner
    hold: Hold
    """The hold of all lines of the submission together."""

    async def settle(
        self, line: BatchLine, generation_id: str, deadline: Deadline, answer: BatchedAnswer
    ) -> LineResult | Undecided:
        """Decode, bill and store the answer to a line, and return the line's result."""
        given = GivenAnswer(answer.status or 0, answer.body)
        parser = self.run.parser
        answered = with_answer(parser.gateway, self.planner, given)
        payer = without_rules(parser.principal)
        run = replace(self.run, parser=replace(parser, gateway=answered, principal=payer))
        outcome = await run.serve(line, generation_id, deadline, make_ledger=self._ledger)
        if isinstance(outcome, GatewayError):
            return run.refused(line.custom_id, generation_id, outcome)
        return outcome

    def _ledger(self, keep: KeepAnswer) -> Ledger:
        return _HeldLine(self.hold, self.records, keep)


class _HeldLine(HeldPart):
    """The ledger of one line, whose money is part of its submission's hold."""

    def __init__(self, whole: Hold, records: LineRecords, keep: KeepAnswer) -> None:
        super().__init__(whole)
        self._records = records
        self._keep = keep

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Store the answer and then the record; the submission settles the hold of all lines."""
        record = replace(record, service_tier=BATCH_TIER)
        if record.outcome == "ok":
            await self._keep(record)
        else:
            record = replace(record, outcome="error", cost_nano_usd=0, lines=())
        return await self._records.decide(record)
