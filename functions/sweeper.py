"""The scheduled function: expires the holds of generations that never came back."""

import asyncio

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.metrics import MetricUnit

from tollgate.core.clock import SystemClock
from tollgate.ledger.sweep import SweepReport
from tollgate.observability.log import configure_logging
from tollgate.settings import Settings
from tollgate.wiring import wire_stores

configure_logging()
_settings = Settings()
_metrics = Metrics(namespace=_settings.metrics_namespace, service="sweeper")


def handler(event: object, context: object) -> None:
    """Sweep once."""
    report = asyncio.run(_sweep())
    _metrics.add_metric("HoldsFound", MetricUnit.Count, report.found)
    _metrics.add_metric("HoldsSettled", MetricUnit.Count, report.settled)
    _metrics.add_metric("OldestHoldAge", MetricUnit.Seconds, report.oldest_age_s)
    _metrics.flush_metrics()


async def _sweep() -> SweepReport:
    stores = wire_stores(_settings, SystemClock())
    try:
        return await stores.sweeper.run()
    finally:
        await stores.aclose()
