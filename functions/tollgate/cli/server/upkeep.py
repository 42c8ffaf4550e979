"""`tollgate upkeep` and `tollgate export`: the scheduled work of a stack or a server."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Final, Literal, get_args

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
from tollgate.wiring.item_versions import claim_store
from tollgate.wiring.stores import Stores, wire_stores
from tollgate.wiring.subjects import wire_subjects
from tollgate.wiring.upkeep import wire_expired_objects, wire_upkeep

Task = Literal["sweep", "rollup", "audit", "subjects"]
# A scan reads pages of up to 1 MB, and no client waits for the result.
_TIMEOUT_S: Final = 10.0
_LOGGER: Final = logging.getLogger("tollgate.upkeep")


@click.command(epilog="Example: tollgate upkeep sweep")
@click.argument("task", type=click.Choice(get_args(Task)))
def upkeep(task: Task) -> None:
    """Run TASK once: sweep every 5 minutes, rollup and subjects every hour, audit every night.

    The task subjects carries out erasures and preserves what legal holds cover; on AWS no function
    does so. The exit status is 1 if the audit finds differences in the books, or if TASK fails.
    """
    configure_logging()
    try:
        books_differ = asyncio.run(_upkeep(task, Settings()))
    except GatewayError as failed:
        _LOGGER.error(f"{task} failed", extra={"fields": {"reason": failed.message}})
        raise SystemExit(1) from failed
    if books_differ:
        raise SystemExit(1)


async def _upkeep(task: Task, settings: Settings) -> bool:
    """Run a task, and return whether it found differences or failed in part."""
    async with _open_stores(settings) as stores:
        if task == "audit":
            return await _audit(settings, stores)
        if task == "subjects":
            return await _serve_subjects(settings, stores)
        await (sweep if task == "sweep" else roll_up)(settings, stores)
        return False


@asynccontextmanager
async def _open_stores(settings: Settings) -> AsyncIterator[Stores]:
    credentials = rotating_credentials(settings)
    if credentials is not None:
        await credentials.renew()
    async with aclosing(wire_stores(settings, SystemClock(), timeout_s=_TIMEOUT_S)) as stores:
        yield stores


async def sweep(settings: Settings, stores: Stores) -> None:
    """Run the work of the sweeper function."""
    await claim_store(stores)
    async with aclosing(wire_upkeep(settings, stores, SystemClock())) as wired:
        swept = await wired.sweeper.run()
        _log_done("swept", swept.counts)
        maintained = await wired.maintenance.run(swept.crowded)
        _log_done("workspaces maintained", asdict(maintained))
        if wired.late_uploads is not None:
            _log_done("late uploads removed", {"objects": await wired.late_uploads.remove()})
        _log_done("webhooks sent", asdict(await wired.webhooks.run()))
        look = await wired.canary.run()
        if look is not None:
            _log_done("canary looked at", look.log_fields)


async def roll_up(settings: Settings, stores: Stores) -> None:
    """Roll up, seal and export finished days, and empty a folder of expired objects."""
    activity = wire_administration(settings, stores, SystemClock()).activity
    _log_done("rolled up", {"days": await activity.close_due()})
    _log_done("audit log sealed", {"days": await seal_audit_log(settings, stores, SystemClock())})
    exports = wire_exports(settings, stores, SystemClock())
    if settings.daily_export and exports is not None:
        _log_done("exported", {"days": await exports.export.export_due()})
    expired = wire_expired_objects(settings, stores, SystemClock())
    if expired is not None:
        _log_done("expired objects removed", {"objects": await expired.remove()})


async def _serve_subjects(settings: Settings, stores: Stores) -> bool:
    async with aclosing(wire_subjects(settings, stores, SystemClock())) as rounds:
        report = await rounds.run()
    _log_done("erasures and legal holds served", asdict(report))
    return report.failed > 0


async def _audit(settings: Settings, stores: Stores) -> bool:
    differences = await wire_upkeep(settings, stores, SystemClock()).audit.run()
    for difference in differences:
        _LOGGER.error("the books differ", extra={"fields": asdict(difference)})
    _log_done("audited", {"differences": len(differences)})
    return bool(differences)


def _log_done(message: str, fields: Mapping[str, JsonValue]) -> None:
    _LOGGER.info(message, extra={"fields": fields})


@click.command(epilog="Example: tollgate export --day 2026-11-21 --workspace acme")
@click.option(
    "--day",
    required=True,
    type=click.DateTime(["%Y-%m-%d"]),
    help="The UTC day, such as 2026-11-21.",
)
@click.option("--workspace", help="Only this workspace; all workspaces by default.")
def export(day: datetime, workspace: str | None) -> None:
    """Write the tables for a closed day to the bucket or folder, replacing existing files.

    Environment variables name the DynamoDB tables and the bucket; see docs/exports.md.
    """
    try:
        asyncio.run(_export(Settings(), int(day.replace(tzinfo=UTC).timestamp()), workspace))
    except GatewayError as failed:
        raise click.ClickException(failed.message) from failed


async def _export(settings: Settings, start_s: int, workspace: str | None) -> None:
    async with _open_stores(settings) as stores:
        exports = wire_exports(settings, stores, SystemClock())
        if exports is None:
            raise click.ClickException(
                "Set TOLLGATE_OBJECTS_BUCKET or TOLLGATE_OBJECTS_FOLDER to the target of exports."
            )
        days = exports.days
        names = await days.workspaces() if workspace is None else (workspace,)
        found = [day for name in names if (day := await days.get(name, start_s)) is not None]
        if not found:
            raise click.ClickException("The day is not closed, or the workspace does not exist.")
        for day in found:
            written = await exports.export.export(day)
            click.echo(f"{day.workspace_id} {day.day}: {written.generations} generations")
            for name in written.files:
                click.echo(f"  {name}")
