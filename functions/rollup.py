"""Lambda entry point of the scheduled roll-up, which stores the final sums of each day's usage."""

import asyncio
from contextlib import aclosing

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from tollgate.core.clock import SystemClock
from tollgate.observability.log import configure_logging
from tollgate.settings import Settings
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.exports import seal_audit_log, wire_exports
from tollgate.wiring.item_versions import check_store
from tollgate.wiring.stores import wire_stores

configure_logging()
_settings = Settings()
_metrics = Metrics(namespace=_settings.metrics_namespace, service="rollup")


def handler(event: object, context: object) -> None:
    """Close every day that is due, seal its audit log, then export the days not exported yet."""
    closed, sealed, exported = asyncio.run(_close())
    _metrics.add_metric("DaysClosed", MetricUnit.Count, closed)
    _metrics.add_metric("AuditDaysSealed", MetricUnit.Count, sealed)
    _metrics.add_metric("DaysExported", MetricUnit.Count, exported)
    _metrics.flush_metrics()


async def _close() -> tuple[int, int, int]:
    clock = SystemClock()
    async with aclosing(wire_stores(_settings, clock)) as stores:
        await check_store(stores)
        closed = await wire_administration(_settings, stores, clock).activity.close_due()
        sealed = await seal_audit_log(_settings, stores, clock)
        exports = wire_exports(_settings, stores, clock) if _settings.daily_export else None
        return closed, sealed, 0 if exports is None else await exports.export.export_due()
