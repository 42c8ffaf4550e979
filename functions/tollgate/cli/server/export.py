"""`tollgate export`: write the tables of a closed day again."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime

import click

from tollgate.core.clock import SystemClock
from tollgate.core.errors import GatewayError
from tollgate.settings import Settings
from tollgate.wiring.aws import rotating_credentials
from tollgate.wiring.exports import wire_exports
from tollgate.wiring.stores import wire_stores


@click.command()
@click.option(
    "--day",
    required=True,
    type=click.DateTime(["%Y-%m-%d"]),
    help="The UTC day, such as 2026-11-21.",
)
@click.option("--workspace", help="Only this workspace; all workspaces by default.")
def export(day: datetime, workspace: str | None) -> None:
    """Write the tables of a closed day to the bucket or folder, replacing existing ones.

    The environment names the tables and the bucket; see docs/exports.md.
    """
    try:
        asyncio.run(_export(Settings(), int(day.replace(tzinfo=UTC).timestamp()), workspace))
    except GatewayError as failed:
        raise click.ClickException(failed.message) from failed


async def _export(settings: Settings, start_s: int, workspace: str | None) -> None:
    clock = SystemClock()
    credentials = rotating_credentials(settings)
    if credentials is not None:
        await credentials.renew()
    async with aclosing(wire_stores(settings, clock, timeout_s=10.0)) as stores:
        exports = wire_exports(settings, stores, clock)
        if exports is None:
            raise click.ClickException(
                "Set TOLLGATE_OBJECTS_BUCKET or TOLLGATE_OBJECTS_FOLDER to where the tables go."
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
