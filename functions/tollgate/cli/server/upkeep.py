"""`tollgate upkeep`: the work of the scheduled functions, for another scheduler."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from typing import Final, Literal, assert_never

import click
from msgspec.structs import asdict
from pydantic import JsonValue

from tollgate.core.clock import SystemClock
from tollgate.core.errors import GatewayError
from tollgate.observability.log import configure_logging
from tollgate.settings import Settings
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.aws import rotating_credentials
from tollgate.wiring.exports import seal_audit_log, wire_exports
from tollgate.wiring.stores import Stores, wire_stores
from tollgate.wiring.upkeep import wire_upkeep

Task = Literal["sweep", "rollup", "audit"]
# Scanning one page reads up to 1 MB, and no client waits for the result.
_TIMEOUT_S: Final = 10.0
_LOGGER: Final = logging.getLogger("tollgate.upkeep")


@click.command()
@click.argument("task", type=click.Choice(["sweep", "rollup", "audit"]))
def upkeep(task: Task) -> None:
    """Run TASK once: sweep every 5 minutes, rollup every hour, audit every night.

    The exit status is 1 if the audit finds differences in the books, or if TASK fails.
    """
    configure_logging()
    try:
        wrong = asyncio.run(_upkeep(task, Settings()))
    except GatewayError as failed:
        _LOGGER.error(f"{task} failed", extra={"fields": {"reason": failed.message}})
        raise SystemExit(1) from failed
    if wrong:
        raise SystemExit(1)


async def _upkeep(task: Task, settings: Settings) -> bool:
    """Run the task, and return whether the books differ."""
    credentials = rotating_credentials(settings)
    if credentials is not None:
        await credentials.renew()
    async with aclosing(wire_stores(settings, SystemClock(), timeout_s=_TIMEOUT_S)) as stores:
        match task:
            case "sweep":
                await sweep(settings, stores)
                return False
            case "rollup":
                await roll_up(settings, stores)
                return False
            case "audit":
                return await _audit(settings, stores)
            case _:
                assert_never(task)


async def sweep(settings: Settings, stores: Stores) -> None:
    """Run the work that is due every five minutes."""
    async with aclosing(wire_upkeep(settings, stores, SystemClock())) as wired:
        swept = await wired.sweeper.run()
        _log_done("swept", swept.counts)
        care = await wired.maintenance.run(swept.crowded)
        _log_done("workspaces maintained", asdict(care))
        _log_done("webhooks sent", asdict(await wired.webhooks.run()))


async def roll_up(settings: Settings, stores: Stores) -> None:
    """Close and seal the days that are over, and export them if the settings name a place."""
    activity = wire_administration(settings, stores, SystemClock()).activity
    _log_done("rolled up", {"days": await activity.close_due()})
    _log_done("audit log sealed", {"days": await seal_audit_log(settings, stores, SystemClock())})
    exports = wire_exports(settings, stores, SystemClock())
    if settings.daily_export and exports is not None:
        _log_done("exported", {"days": await exports.export.export_due()})


async def _audit(settings: Settings, stores: Stores) -> bool:
    differences = await wire_upkeep(settings, stores, SystemClock()).audit.run()
    for difference in differences:
        _LOGGER.error("the books differ", extra={"fields": asdict(difference)})
    _log_done("audited", {"differences": len(differences)})
    return bool(differences)


def _log_done(message: str, fields: Mapping[str, JsonValue]) -> None:
    _LOGGER.info(message, extra={"fields": fields})
