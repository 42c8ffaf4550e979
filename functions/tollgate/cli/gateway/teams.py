"""`tollgate teams`: make, list, limit and delete teams of a running gateway."""

from typing import Any, Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.gateway.limits import draw_limits, level_cells, level_settings, take_away
from tollgate.cli.tables import OutputStyle, as_json, show, show_one
from tollgate.core.dotted_names import DottedName

_TEAM_SHAPE: Final = DottedName[type[Any]]("tollgate.web.people_shapes:TeamObject")
_LISTED: Final = ("id", "left", "limits", "held", "name", "created")
_SHOWN: Final = (
    "id",
    "name",
    "state",
    "models",
    "tier",
    "rates",
    "held",
    "created",
    "limits",
    "left",
)


@click.group()
def teams() -> None:
    """List, create, limit and delete teams of the workspace."""


@teams.command("ls")
@click.option("--deleted", is_flag=True, help="List deleted teams too.")
@calls_gateway
def list_teams(api: Api, style: OutputStyle, *, deleted: bool) -> None:
    """List the teams by id, with what is left of their limits."""
    found = list(api.pages("/teams", {"deleted": "true" if deleted else None}, "cursor"))
    columns = (*_LISTED, "state") if deleted else _LISTED
    show([_row(team) for team in found], columns, style, data=found, shape=_TEAM_SHAPE)


@teams.command("show")
@click.argument("team_id", metavar="ID")
@calls_gateway
def show_team(api: Api, style: OutputStyle, team_id: str) -> None:
    """Show rights and limits of a team, and what is spent, held and left of them."""
    _show(api.get(f"/teams/{team_id}"), style)


@teams.command("create")
@click.argument("team_id", metavar="ID")
@level_settings
@calls_gateway
def create_team(api: Api, style: OutputStyle, *, team_id: str, settings: dict[str, Any]) -> None:
    """Create a team: small letters, digits, dots, dashes and underscores, at most 64."""
    _show(api.post("/teams", {"id": team_id, **settings}), style)


@teams.command("update")
@click.argument("team_id", metavar="ID")
@click.option("--no", "without", multiple=True, metavar="SETTING", help="Take a setting away.")
@level_settings
@calls_gateway
def update_team(
    api: Api,
    style: OutputStyle,
    *,
    team_id: str,
    without: tuple[str, ...],
    settings: dict[str, Any],
) -> None:
    """Change what is given of a team; --no day takes its daily limit away."""
    take_away(settings, without)
    if not settings:
        raise click.UsageError("Say what to change; `tollgate teams update --help` lists it.")
    _show(api.patch(f"/teams/{team_id}", settings), style)


@teams.command("delete")
@click.argument("team_id", metavar="ID")
@calls_gateway
def delete_team(api: Api, style: OutputStyle, team_id: str) -> None:
    """Delete a team without keys and members; what it has spent stays on record."""
    reply = api.delete(f"/teams/{team_id}")
    click.echo(as_json(reply) if style == "json" else f"Team {team_id} is deleted.")


def _show(reply: Any, style: OutputStyle) -> None:
    show_one(_row(reply["data"]), _SHOWN, style, data=reply["data"], shape=_TEAM_SHAPE)
    draw_limits(reply["data"], style)


def _row(team: Any) -> dict[str, str]:
    state = "there" if team["deleted_at"] is None else f"deleted {team['deleted_at']}"
    return {**level_cells(team), "state": state}
