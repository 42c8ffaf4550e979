"""Calls models of the catalog on behalf of another generation, which pays for the calls."""

import asyncio
from typing import assert_never

from msgspec import Struct

from tollgate.core.clock import Clock, Deadline
from tollgate.core.errors import UpstreamError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.records.generation import BillLine
from tollgate.core.response import Fold, GenerationResponse
from tollgate.core.work.base import InputWork, Work
from tollgate.engine import retry
from tollgate.engine.attempt_cursor import AttemptCursor
from tollgate.engine.choices import encode_attempt
from tollgate.engine.gateway import ProviderDirectory
from tollgate.engine.usage.round_account import RoundAccount
from tollgate.engine.work.batches import encode_work
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest


class InnerAnswer(Struct, frozen=True, kw_only=True):
    """Answer to an inner call, with its bill at the prices of the model that served."""

    response: GenerationResponse
    lines: tuple[BillLine, ...]


class InnerCalls(Struct, frozen=True, kw_only=True):
    """Calls within one generation, planned and retried like requests of callers."""

    planner: Planner
    providers: ProviderDirectory
    clock: Clock
    ids: IdSource
    when_s: float
    """Unix time of the generation, in seconds."""

    def plan(self, work: Work, principal: Principal) -> Plan:
        """Return the attempts with their maximum cost; raise GatewayError if no model may serve."""
        return plan_inner_call(self.planner, work, principal, now_s=self.when_s)

    async def answer(self, work: Work, principal: Principal, *, timeout_s: float) -> InnerAnswer:
        """Return the whole answer; raise TimeoutError or GatewayError if no endpoint answers."""
        deadline = Deadline.within(self.clock, timeout_s)
        async with asyncio.timeout(timeout_s):
            plan = self.plan(work, principal)
            return await self._attempt(
                AttemptCursor(plan), plan, work, principal=principal, deadline=deadline
            )

    async def _attempt(
        self,
        cursor: AttemptCursor,
        plan: Plan,
        work: Work,
        *,
        principal: Principal,
        deadline: Deadline,
    ) -> InnerAnswer:
        while True:
            try:
                return await self._answer_at(cursor.attempt, plan, work, principal)
            except UpstreamError as error:
                decision = cursor.advance(
                    error, remaining_s=deadline.remaining_s(), jitter=self.ids.uniform()
                )
                match decision:
                    case retry.Again(delay_s):
                        await self.clock.sleep(delay_s)
                    case retry.Next():
                        pass
                    case retry.Stop():
                        raise
                    case _:
                        assert_never(decision)

    async def _answer_at(
        self, attempt: Attempt, plan: Plan, work: Work, principal: Principal
    ) -> InnerAnswer:
        provider = self.providers.provider(attempt.target.provider, principal)
        account = RoundAccount(work, plan, int(self.when_s))
        account.serve(attempt, streams=1)
        fold = Fold()
        encoded = (
            encode_work(provider, attempt, work)
            if isinstance(work, InputWork)
            else encode_attempt(provider, attempt, work)
        )
        async with encoded.open() as events:
            async for read_events in events:
                for choice, event in read_events:
                    account.observe(event, choice)
                    fold.accept(event)
        usages, _ = account.measure()
        return InnerAnswer(response=fold.response(), lines=account.bill(usages))


def plan_inner_call(planner: Planner, work: Work, principal: Principal, *, now_s: float) -> Plan:
    """Return the plan of an inner call; raise GatewayError if no model may serve."""
    planning_request = PlanningRequest.of(work, principal=principal, request_id=principal.key_id)
    return planner.plan(planning_request, now_s=now_s)
