"""Generates images for the server tool `image`; each is planned, retried and billed like an image
request.
"""

import asyncio
from decimal import Decimal
from typing import Final, assert_never

import msgspec
from msgspec import Struct

from tollgate.core.clock import Clock, Deadline
from tollgate.core.content import InlineMedia, MadeImage, MediaUrl
from tollgate.core.errors import GatewayError, UpstreamError
from tollgate.core.events import Output
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.records.generation import BillLine, Fee
from tollgate.core.work.images import ImagePiece, ImageRequest
from tollgate.engine import retry
from tollgate.engine.attempt_cursor import AttemptCursor
from tollgate.engine.gateway import ProviderDirectory
from tollgate.engine.usage.round_account import RoundAccount
from tollgate.engine.work.batches import encode_work
from tollgate.routing.planning.plan import Attempt, Plan
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.tools.ports.base import Painted, RunFailure

_PIECES_PER_RATE: Final = Decimal(1_000_000)


class CatalogPainter(Struct, frozen=True, kw_only=True):
    """Implements `tools.ports.base.Painter` at fixed prices, which the hold covers."""

    planner: Planner
    providers: ProviderDirectory
    clock: Clock
    ids: IdSource
    when_s: float
    """Unix time of the request, in seconds."""

    def fees_max_nano_usd(self, work: ImageRequest, principal: Principal) -> int:
        """Return the maximum cost of the work; raise GatewayError if no model may do it."""
        return self._plan(work, principal).cost_max_nano_usd

    async def paint(self, work: ImageRequest, principal: Principal, *, timeout_s: float) -> Painted:
        """Generate the images; raise RunFailure if no endpoint manages that in time."""
        deadline = Deadline.within(self.clock, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                plan = self._plan(work, principal)
                return await self._attempt(AttemptCursor(plan), plan, work, deadline)
        except TimeoutError as late:
            raise RunFailure("unavailable", "the image was not generated in time") from late
        except GatewayError as error:
            raise RunFailure("unavailable", "no image could be generated") from error

    def _plan(self, work: ImageRequest, principal: Principal) -> Plan:
        planning_request = PlanningRequest.of(
            work, principal=principal, request_id=principal.key_id
        )
        return self.planner.plan(planning_request, now_s=self.when_s)

    async def _attempt(
        self, cursor: AttemptCursor, plan: Plan, work: ImageRequest, deadline: Deadline
    ) -> Painted:
        while True:
            try:
                return await self._paint_at(cursor.attempt, plan, work)
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

    async def _paint_at(self, attempt: Attempt, plan: Plan, work: ImageRequest) -> Painted:
        provider = self.providers.provider(attempt.target.provider)
        account = RoundAccount(work, plan, int(self.when_s))
        account.serve(attempt, streams=1)
        pieces: list[bytes] = []
        async with encode_work(provider, attempt, work).open() as events:
            async for read_events in events:
                for choice, event in read_events:
                    account.observe(event, choice)
                    if isinstance(event, Output):
                        pieces += event.pieces
        usages, _ = account.measure()
        return Painted(
            images=tuple(map(_made_image, pieces)), fees=tuple(map(_fee, account.bill(usages)))
        )


def _made_image(piece: bytes) -> MadeImage:
    picture = msgspec.json.decode(piece, type=ImagePiece)
    if picture.b64_json is None:
        return MadeImage(source=MediaUrl(url=picture.url or ""))
    media_type = f"image/{picture.output_format}"
    return MadeImage(source=InlineMedia(media_type=media_type, base64=picture.b64_json))


def _fee(line: BillLine) -> Fee:
    """Convert a line of the image model's bill to a fee of the tool with the same cost."""
    return Fee(
        item=f"image_model_{line.item}",
        quantity=line.quantity,
        usd_each=line.usd_per_million / _PIECES_PER_RATE,
    )
