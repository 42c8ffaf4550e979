"""Submits a background response to its provider's background mode, and polls the provider.

Before anything is sent, the run is stored in the response, the hold is placed under the run's id,
and the hold is stored as a part of the response. Providers have neither idempotency keys nor a list
of responses, so a request whose reply was lost is never sent again: the response fails.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from msgspec import Struct, json
from msgspec.structs import replace

from tollgate.core.background import BackgroundResponse, ProviderRun
from tollgate.core.errors import ErrorCode, GatewayError, LedgerError, RequestError, UpstreamError
from tollgate.core.limits import TierLimits
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.request import GenerationRequest
from tollgate.engine.admission import budget_left_percent
from tollgate.engine.batches.batch_endpoints import can_wait_at_provider
from tollgate.engine.batches.line_run import Waits
from tollgate.engine.batches.provider_answers import GivenAnswer, HeldPart, with_answer
from tollgate.engine.choices import encode_attempt
from tollgate.engine.files.media import RequestMedia
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.generate import planning_request
from tollgate.engine.rounds.native_tools import leave_to_provider
from tollgate.engine.rounds.server_tools import offer_server_tools
from tollgate.engine.uncancelled import run_uncancelled
from tollgate.providers.ports.background import ProviderBackground, ResponseGone
from tollgate.providers.ports.base import WireRequest
from tollgate.providers.ports.provider_batches import NotAccepted
from tollgate.routing.planning.batch_planner import BatchPlanner
from tollgate.routing.planning.plan import Plan
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.price import PriceSchedule
from tollgate.stores.ports.base import Hold
from tollgate.stores.ports.batches import BackgroundParts, LineRecords, SubmissionLedger
from tollgate.web.background.answering import unbilled

_log: Final = logging.getLogger(__name__)

_RETRY_S: Final = 5.0
# The pause between polls is a quarter of the age of the run, within these bounds.
_POLL_MIN_S: Final = 5.0
_POLL_MAX_S: Final = 30.0
# Seconds after which a run is given up, and cancelled at its provider.
RUN_AT_PROVIDER_MAX_S: Final = 6 * 3_600


class SubmittedCall(Struct, frozen=True, kw_only=True):
    """The stored hold, endpoint and prices by which a run's answer is billed."""

    hold: Hold
    endpoint_id: str
    prices: PriceSchedule


class RunAnswer(Struct, frozen=True):
    """The answer of a run that has ended."""

    submitted: SubmittedCall
    body: bytes


class _Offer(Struct, frozen=True, kw_only=True):
    """An encoded request for a provider that can run it, with what its hold needs."""

    wire: WireRequest
    endpoint_id: str
    prices: PriceSchedule
    bound_nano_usd: int
    covered: bool
    tier: TierLimits | None
    models: tuple[str, ...]


class RunServices(Struct, frozen=True, kw_only=True):
    """The stores that runs at providers use."""

    parts: BackgroundParts
    ledger: SubmissionLedger
    records: LineRecords


class ResponseRun:
    """The work of one try on a response that may run at a provider."""

    def __init__(
        self,
        services: RunServices,
        gateway: Gateway,
        job: BackgroundResponse,
        change: Callable[[ProviderRun | None], Awaitable[BackgroundResponse | None]],
    ) -> None:
        """Prepare the work; `change` stores the run, or returns None if the lease is lost."""
        self._services = services
        self._gateway = gateway
        self._job = job
        self._change = change
        self._run = job.run

    async def submit(self, call: Call) -> Waits | GatewayError | None:
        """Submit a response to its provider; return None if the gateway must answer it itself.

        Streams are always answered by the gateway. Raises the error if the hold is refused.
        """
        gateway = self._gateway
        if self._job.streams:
            return None
        left = budget_left_percent(gateway, call.principal)
        offer = await gateway.computations(call).run(partial(self._offer, call, left))
        if offer is None:
            return None
        slug = offer.endpoint_id.partition("/")[0]
        run = ProviderRun(
            id=gateway.ids.new_id(),
            provider=slug,
            at_s=gateway.clock.now_s(),
            path=offer.wire.path,
        )
        provider = self._provider(slug)
        if provider is None or not await self._store(run):
            return None if provider is None else Waits(_RETRY_S)
        try:
            hold = await self._services.ledger.hold(
                call.principal,
                offer.bound_nano_usd,
                run.id,
                covered=offer.covered,
                tier=offer.tier,
                models=offer.models,
            )
        except GatewayError:
            await self._store(None)
            raise
        if hold.id != run.id:
            # The write under the run's id had an unknown outcome, so money is held under another
            # id. Release that; the sweeper releases a hold under the run's id, if there is one.
            await self._services.ledger.settle_sum(hold, 0)
            await self._store(None)
            return Waits(_RETRY_S)
        bare = replace(hold, rate_limit=None, token_limit=None, warning=None, tier=None)
        submitted = SubmittedCall(hold=bare, endpoint_id=offer.endpoint_id, prices=offer.prices)
        await self._services.parts.put(self._job, _name(run), json.encode(submitted))
        if not await self._store(run):
            return Waits(_RETRY_S)
        sending = self._send(provider, run, offer.wire, submitted)
        outcome, cancelled = await run_uncancelled(sending)
        if cancelled is not None:
            raise cancelled
        return outcome

    async def _send(
        self, provider: ProviderBackground, run: ProviderRun, wire: WireRequest, sent: SubmittedCall
    ) -> Waits | GatewayError | None:
        try:
            response_id = await provider.submit(wire.path, wire.body, wire.headers)
        except NotAccepted as refused:
            _log.info("%s did not accept %s: %s", run.provider, self._job.id, refused.__cause__)
            await self._services.ledger.settle_sum(sent.hold, 0)
            stored = await self._change(None)
            return Waits(_RETRY_S) if stored is None or stored.is_ended else None
        except UpstreamError as failure:
            _log.warning("unknown whether %s accepted %s: %s", run.provider, run.id, failure)
            return _unconfirmed()
        confirmed = replace(run, response_id=response_id)
        if not await self._store(confirmed):
            # A later try gave the run up while this process was frozen.
            await provider.cancel(run.path, response_id)
            await provider.delete(run.path, response_id)
        return Waits(_POLL_MIN_S)

    async def poll(self) -> RunAnswer | Waits | GatewayError | None:
        """Return the answer, the next poll, or the failure; None if nothing was sent."""
        run, submitted = self._run, await self._load()
        if run is None or submitted is None:
            return None if run is None or await self._store(None) else Waits(_RETRY_S)
        if run.response_id is None:
            return _unconfirmed()
        provider, age_s = self._provider(run.provider), self._gateway.clock.now_s() - run.at_s
        body: bytes | None = None
        try:
            if provider is not None:
                if self.is_cancelled or age_s > RUN_AT_PROVIDER_MAX_S:
                    await provider.cancel(run.path, run.response_id)
                body = await provider.read(run.path, run.response_id)
        except ResponseGone:
            return _failed("The provider no longer has this response.")
        except UpstreamError as failure:
            _log.warning("%s of %s cannot be polled: %s", run.response_id, run.provider, failure)
        if body == b"":
            return _failed("The response was cancelled at its provider.")
        if body is not None:
            return RunAnswer(submitted, body)
        if age_s > RUN_AT_PROVIDER_MAX_S:
            return _too_long()
        return Waits(min(max(age_s / 4, _POLL_MIN_S), _POLL_MAX_S))

    @property
    def is_cancelled(self) -> bool:
        """True if the caller has cancelled the response."""
        return self._job.status == "cancelled"

    def answered(self, answer: RunAnswer) -> Gateway:
        """Return a gateway that processes the answer at the prices of the submission."""
        submitted = answer.submitted
        planner = BatchPlanner(
            self._gateway.planner.catalog, submitted.endpoint_id, submitted.prices
        )
        return with_answer(self._gateway, planner, GivenAnswer(200, answer.body))

    def ledger(
        self, answer: RunAnswer, keep: Callable[[GenerationRecord], Awaitable[None]]
    ) -> "RunLedger":
        """Return a ledger that settles the answer after `keep` has stored it."""
        started_s = self._gateway.clock.now_s() if self._run is None else self._run.at_s
        waited_ms = int((self._gateway.clock.now_s() - started_s) * 1_000)
        return RunLedger(
            self._services,
            answer.submitted.hold,
            keep,
            waited_ms=waited_ms,
            is_cancelled=self.is_cancelled,
        )

    async def release(self, cost_nano_usd: int = 0) -> None:
        """Settle the hold with the response's cost, and delete the response at the provider.

        The call can be repeated without harm.
        """
        run, submitted = self._run, await self._load()
        if run is None or submitted is None:
            return
        await self._services.ledger.settle_sum(submitted.hold, cost_nano_usd)
        provider = self._provider(run.provider)
        if provider is None or run.response_id is None:
            return
        try:
            await provider.delete(run.path, run.response_id)
        except UpstreamError as failure:
            _log.warning("%s was not deleted at %s: %s", run.response_id, run.provider, failure)

    def _offer(self, call: Call, left_percent: int | None) -> _Offer | None:
        """Return the request for its first provider; None if the gateway must answer it itself."""
        gateway, request = self._gateway, call.parsed.request
        if not isinstance(request, GenerationRequest):
            return None
        bound, tools = None, request
        if request.server_tools:
            offered = offer_server_tools(gateway.tools, gateway.planner, request, call.principal)
            if offered.left_out or offered.injected is None:
                return None
            tools, bound = offered.request, offered.injected.bound
            call = replace(call, parsed=replace(call.parsed, request=tools))
        wanted = planning_request(call, bound, budget_left_percent=left_percent)
        now_s = gateway.clock.now_s()
        plan = gateway.planner.plan(wanted, now_s=now_s)
        first = plan.attempts[0]
        sent = leave_to_provider(tools, first.target) if tools.server_tools else tools
        if len(sent.server_tools) < len(tools.server_tools) or not self._can_run(
            call, wanted, plan
        ):
            return None
        covered = (call.principal.admission or gateway.admission) == "covered"
        prices, endpoint_id = first.asked_prices, first.target.endpoint_id
        catalog = gateway.planner.catalog
        planner = BatchPlanner(catalog, endpoint_id, prices, covers=covered)
        provider = gateway.providers.provider(first.target.provider, call.principal)
        media = RequestMedia(gateway.media, sent, gateway.files, gateway.computations(call))
        if not media.is_whole_for(first.target):
            return None
        wires = encode_attempt(provider, first, sent).wires
        if len(wires) != 1:
            return None
        return _Offer(
            wire=wires[0],
            endpoint_id=endpoint_id,
            prices=prices,
            bound_nano_usd=planner.plan(wanted, now_s=now_s).cost_max_nano_usd,
            covered=covered,
            tier=plan.tier,
            models=plan.models[:1],
        )

    def _can_run(self, call: Call, wanted: PlanningRequest, plan: Plan) -> bool:
        """Return whether the plan's first provider may and can run the request.

        The provider stores the answer until the gateway deletes it, and does not state where. So
        prompt policies on retention or regions exclude such a run.
        """
        gateway = self._gateway
        if self._provider(plan.attempts[0].target.provider) is None:
            return False
        stated = wanted.under(gateway.planner.catalog.defaults.prompt_policy).prompt_policies
        asked = call.parsed.request.preferences.prompt_policy
        if any(each.no_retention or each.regions for each in (*stated, asked) if each is not None):
            return False
        return can_wait_at_provider(gateway, call, plan)

    def _provider(self, slug: str) -> ProviderBackground | None:
        if slug not in self._gateway.planner.catalog.providers:
            return None
        job = self._job
        # Rows with `background` have a key, so the caller's role and team make no difference.
        caller = Principal(
            key_id=job.key_id, workspace_id=job.workspace_id, role="inference", label=""
        )
        load = self._gateway.providers.provider(slug, caller).background
        return None if load is None else load()

    async def _load(self) -> SubmittedCall | None:
        """Return the run's stored hold and prices; None if nothing can have been sent."""
        if self._run is None:
            return None
        content = await self._services.parts.get(self._job, _name(self._run))
        return None if content is None else json.decode(content, type=SubmittedCall)

    async def _store(self, run: ProviderRun | None) -> bool:
        """Store the run; return False if the try has lost its lease."""
        if await self._change(run) is None:
            return False
        self._run = run
        return True


class RunLedger(HeldPart):
    """A ledger for the answer of a run, whose hold was placed at the submission."""

    def __init__(
        self,
        services: RunServices,
        whole: Hold,
        keep: Callable[[GenerationRecord], Awaitable[None]],
        *,
        waited_ms: int,
        is_cancelled: bool,
    ) -> None:
        super().__init__(whole)
        self._services = services
        self._run_hold = whole
        self._keep = keep
        self._waited_ms = waited_ms
        self._is_cancelled = is_cancelled

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Store the answer, then the record, and then replace the hold by the cost.

        If the worker is stopped before that, the next try decides on the generation.
        """
        if record.outcome == "cancelled":
            return replace(record, outcome="lost", cost_nano_usd=0, lines=())
        record = replace(record, duration_ms=max(record.duration_ms, self._waited_ms))
        if record.outcome != "ok":
            record = unbilled(record)
        elif self._is_cancelled:
            record = replace(record, outcome="cancelled")
        else:
            try:
                await self._keep(record)
            except LedgerError as failure:
                if failure.code is not ErrorCode.PAYLOAD_TOO_LARGE:
                    raise
                record = unbilled(record, failure.code)
        decided = await self._services.records.decide(record)
        if decided.outcome != "lost":
            await self._services.ledger.settle_sum(self._run_hold, decided.cost_nano_usd)
        return decided


def _name(run: ProviderRun) -> str:
    """Return the name of the response's part with the run's hold and prices."""
    return f"runs/{run.id}"


def _failed(message: str) -> GatewayError:
    return RequestError(ErrorCode.PROVIDER_UNAVAILABLE, message)


def _unconfirmed() -> GatewayError:
    return _failed(
        "The provider did not confirm this response, so it is unknown whether the provider runs "
        "it. It was not sent again."
    )


def _too_long() -> GatewayError:
    hours = RUN_AT_PROVIDER_MAX_S // 3_600
    message = f"The provider did not finish the response within {hours} hours."
    return RequestError(ErrorCode.PROVIDER_TIMEOUT, message)
