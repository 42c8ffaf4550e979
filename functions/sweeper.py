"""Lambda entry point of scheduled upkeep, which runs the task that an event names.

`{"task": "audit"}` compares the books, and `{"task": "webhooks"}` sends events. Any other event
sweeps, maintains workspaces, removes late uploads and looks at the canary.
Webhooks have their own schedule, because receivers decide how long deliveries take.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit
from msgspec.structs import asdict

from tollgate.core.clock import SystemClock
from tollgate.observability.log import configure_logging
from tollgate.settings import Settings
from tollgate.stores.rules.reports import BrokenInvariant, WebhookReport
from tollgate.wiring.item_versions import check_store, claim_store
from tollgate.wiring.stores import Stores, wire_stores
from tollgate.wiring.upkeep import Upkeep, wire_upkeep

# Scanning one page reads up to 1 MB, and no caller waits for the result.
_TIMEOUT_S: Final = 10.0

configure_logging()
_log = logging.getLogger("tollgate.sweeper")
_settings = Settings()
_metrics = Metrics(namespace=_settings.metrics_namespace, service="sweeper")


def handler(event: Mapping[str, object], context: object) -> None:
    """Run the task that the event names."""
    match event.get("task"):
        case "audit":
            _run_audit()
        case "webhooks":
            hooks = asyncio.run(_send_webhooks())
            _metrics.add_metric("WebhooksSent", MetricUnit.Count, hooks.sent)
            _metrics.add_metric("WebhooksFailed", MetricUnit.Count, hooks.failed)
            _metrics.flush_metrics()
        case _:
            asyncio.run(_sweep())


def _run_audit() -> None:
    try:
        differences = asyncio.run(_audit())
    except Exception:
        # A failed audit raises the same alarm as an audit that found a difference.
        _metrics.add_metric("AuditDifference", MetricUnit.Count, 1)
        _metrics.flush_metrics()
        raise
    _metrics.add_metric("AuditDifference", MetricUnit.Count, len(differences))
    for difference in differences:
        _log.error("the books differ", extra={"fields": asdict(difference)})
    _metrics.flush_metrics()


async def _sweep() -> None:
    """Run the sweep and the maintenance; each part's metrics are sent before the next part."""
    async with _upkeep() as (stores, upkeep):
        # A release that is older than the items fails here, which raises the alarm.
        await claim_store(stores)
        swept = await upkeep.sweeper.run()
        _metrics.add_metric("HoldsFound", MetricUnit.Count, swept.found)
        _metrics.add_metric("HoldsSettled", MetricUnit.Count, swept.settled)
        _metrics.add_metric("OldestHoldAge", MetricUnit.Seconds, swept.oldest_age_s)
        _metrics.flush_metrics()
        maintained = await upkeep.maintenance.run(swept.crowded)
        _metrics.add_metric("WorkspacesFailed", MetricUnit.Count, maintained.failed)
        _metrics.flush_metrics()
        if upkeep.late_uploads is not None:
            removed = await upkeep.late_uploads.remove()
            _log.info("late uploads removed", extra={"fields": {"objects": removed}})
        woken = await upkeep.open_batches.wake()
        _log.info("workers of open batches woken", extra={"fields": {"batches": woken}})
        woken = await upkeep.open_background.wake()
        _log.info("workers of open responses woken", extra={"fields": {"responses": woken}})
        woken = await upkeep.open_shadows.wake()
        _log.info("workers of open shadows woken", extra={"fields": {"shadows": woken}})
        woken = await upkeep.open_videos.wake()
        _log.info("workers of open videos woken", extra={"fields": {"videos": woken}})
        # This part is the last, because it may read many records.
        look = await upkeep.canary.run()
        if look is not None:
            _log.info("canary looked at", extra={"fields": look.log_fields})


async def _send_webhooks() -> WebhookReport:
    async with _upkeep() as (stores, upkeep):
        await check_store(stores)
        return await upkeep.webhooks.run()


async def _audit() -> Sequence[BrokenInvariant]:
    async with _upkeep() as (stores, upkeep):
        await check_store(stores)
        return await upkeep.audit.run()


@asynccontextmanager
async def _upkeep() -> AsyncIterator[tuple[Stores, Upkeep]]:
    clock = SystemClock()
    async with (
        aclosing(wire_stores(_settings, clock, timeout_s=_TIMEOUT_S)) as stores,
        aclosing(wire_upkeep(_settings, stores, clock)) as upkeep,
    ):
        yield stores, upkeep
