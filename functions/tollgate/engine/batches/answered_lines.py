"""Bills lines that a provider has run in a batch: each is a generation whose answer is here."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.clock import Deadline
from tollgate.core.errors import GatewayError
from tollgate.core.limits import SessionLimit, TierLimits
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.routing.endpoint_status import (
    AnswerTime,
    CooldownPolicy,
    KeyFault,
    KeyNote,
    Speed,
)
from tollgate.core.service_tiers import BATCH_TIER
from tollgate.engine.batches.line_run import KeepAnswer, LineRun, Undecided
from tollgate.engine.batches.lines import BatchLine
from tollgate.engine.batches.results import LineResult
from tollgate.engine.gateway import ProviderDirectory
from tollgate.providers.ports.base import (
    Frame,
    Provider,
    ReadyRequest,
    Timeouts,
    UpstreamRefused,
    WireRequest,
)
from tollgate.providers.ports.provider_batches import BatchedAnswer
from tollgate.routing.planning.batch_planner import BatchPlanner
from tollgate.stores.ports.base import Hold, Ledger
from tollgate.stores.ports.batches import LineRecords

_OK = 200


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
        gateway = self.run.parser.gateway
        answered = replace(
            gateway,
            planner=self.planner,
            providers=_AnsweredProviders(gateway.providers, answer),
            cooldowns=_UnreportedEndpoints(),
        )
        run = replace(self.run, parser=replace(self.run.parser, gateway=answered))
        outcome = await run.serve(line, generation_id, deadline, make_ledger=self._ledger)
        if isinstance(outcome, GatewayError):
            return run.refused(line.custom_id, generation_id, outcome)
        return outcome

    def _ledger(self, keep: KeepAnswer) -> Ledger:
        return _HeldLine(self.hold, self.records, keep)


class _HeldLine:
    """The ledger of one line, whose money is part of its submission's hold."""

    def __init__(self, whole: Hold, records: LineRecords, keep: KeepAnswer) -> None:
        self._whole = whole
        self._records = records
        self._keep = keep

    async def hold(
        self,
        principal: Principal,
        amount_nano_usd: int,
        first_id: str | None = None,
        *,
        tokens: int = 0,
        covered: bool = False,
        tier: TierLimits | None = None,
        session: SessionLimit | None = None,
        models: tuple[str, ...] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> Hold:
        """Return the line's part of the hold; nothing is written."""
        return replace(
            self._whole,
            id=first_id or self._whole.id,
            wallet_nano_usd=amount_nano_usd,
            key_nano_usd=amount_nano_usd,
            covered=False,
        )

    def budget_left_percent(
        self, principal: Principal, *, tier: TierLimits | None = None
    ) -> int | None:
        return None

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        return hold

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Store the answer and then the record; the submission settles the hold of all lines."""
        record = replace(record, service_tier=BATCH_TIER)
        if record.outcome == "ok":
            await self._keep(record)
        else:
            record = replace(record, outcome="error", cost_nano_usd=0, lines=())
        return await self._records.decide(record)


class _AnsweredProviders(Struct, frozen=True):
    """The providers of a catalog, which answer every request with an answer of a batch."""

    directory: ProviderDirectory
    answer: BatchedAnswer

    def provider(self, slug: str, principal: Principal) -> Provider:
        known = self.directory.provider(slug, principal)
        return Provider(
            known.codec, _BatchAnswer(self.answer), known.batch_codecs, known.stream_codecs
        )


class _BatchAnswer:
    """A transport that sends nothing, and receives an answer of a batch."""

    def __init__(self, answer: BatchedAnswer) -> None:
        self._answer = answer

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        return ReadyRequest(lambda: self.open(request, timeouts), lambda: None)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        answer = self._answer
        if answer.status != _OK:
            raise UpstreamRefused(answer.status or 0, {}, answer.body)
        yield self._frames()

    async def _frames(self) -> AsyncIterator[Sequence[Frame]]:
        yield (Frame(data=self._answer.body),)


class _UnreportedEndpoints:
    """A cooldown store without entries: a batch says nothing about interactive requests."""

    async def find_resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        return {}

    async def count_failure(
        self, endpoint_id: str, policy: CooldownPolicy, fault: KeyFault | None = None
    ) -> bool:
        return False

    async def begin_probe(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        return True

    def awaits_answer(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        return False

    async def note_recovery(self, endpoint_id: str, policy: CooldownPolicy) -> None:
        """Ignore the endpoint."""

    async def find_key_notes(self, endpoint_ids: Collection[str]) -> Mapping[str, KeyNote]:
        return {}

    def add_answer(self, endpoint_id: str, times: AnswerTime) -> bool:
        return False

    async def write_speed(self, endpoint_id: str) -> None:
        """Ignore the endpoint."""

    async def find_speeds(self, endpoint_ids: Collection[str]) -> Mapping[str, Speed]:
        return {}
