"""`tollgate members`: add, list, limit and remove members of a running gateway's workspace."""

from collections.abc import Callable
from typing import Any, Final, get_args

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.gateway.limits import draw_limits, level_cells, level_settings, take_away
from tollgate.cli.tables import OutputStyle, as_json, show, show_one
from tollgate.core.dotted_names import DottedName
from tollgate.core.principal import MemberRole

_MEMBER_SHAPE: Final = DottedName[type[Any]]("tollgate.web.people_shapes:MemberObject")
_LISTED: Final = ("id", "role", "team", "left", "limits", "held", "name", "created")
_SHOWN: Final = (
    "id",
    "name",
    "email",
    "role",
    "team",
    "state",
    "sign_in",
    "models",
    "tier",
    "rates",
    "held",
    "created",
    "limits",
    "left",
)
# Settings that `--no` takes away besides those of teams.
_REMOVABLE: Final = {"team": "team_id", "email": "email"}
_workspace = click.option(
    "--workspace", metavar="ID", help="Workspace of the member, for the operator."
)


@click.group()
def members() -> None:
    """List, add, limit and remove members of the workspace."""


def _person(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the settings of a member beside those of a team."""
    for option in (
        click.option("--email", help="Address that sign-in may know the member by."),
        click.option("--team", "team_id", metavar="ID", help="Team of the keys that name none."),
        click.option(
            "--role",
            type=click.Choice(get_args(MemberRole)),
            help="What a member who signs in may do; a new one is a developer.",
        ),
    ):
        command = option(command)
    return command


@members.command("ls")
@click.option("--team", metavar="ID", help="Members of this team.")
@click.option("--removed", is_flag=True, help="List removed members too.")
@_workspace
@calls_gateway
def list_members(
    api: Api, style: OutputStyle, *, team: str | None, removed: bool, workspace: str | None
) -> None:
    """List the members by id, with what is left of their limits."""
    query = {"team": team, "removed": "true" if removed else None}
    found = list(api.pages(_path(workspace), query, "cursor"))
    columns = (*_LISTED, "state") if removed else _LISTED
    show([_row(it) for it in found], columns, style, data=found, shape=_MEMBER_SHAPE)


@members.command("show")
@click.argument("member_id", metavar="ID")
@calls_gateway
def show_member(api: Api, style: OutputStyle, member_id: str) -> None:
    """Show role and limits of a member, and what is spent, held and left of them."""
    _show(api.get(f"/members/{member_id}"), style)


@members.command("create")
@click.argument("member_id", metavar="ID")
@_workspace
@_person
@level_settings
@calls_gateway
def create_member(
    api: Api,
    style: OutputStyle,
    *,
    member_id: str,
    workspace: str | None,
    settings: dict[str, Any],
    **person: str | None,
) -> None:
    """Add a member: letters, digits and .-_@+, at most 128, such as an e-mail address."""
    body = {"id": member_id, **_given(person), **settings}
    _show(api.post(_path(workspace), body), style)


@members.command("update")
@click.argument("member_id", metavar="ID")
@click.option("--no", "without", multiple=True, metavar="SETTING", help="Take a setting away.")
@_workspace
@_person
@level_settings
@calls_gateway
def update_member(
    api: Api,
    style: OutputStyle,
    *,
    member_id: str,
    without: tuple[str, ...],
    workspace: str | None,
    settings: dict[str, Any],
    **person: str | None,
) -> None:
    """Change what is given of a member; --no team leaves the team."""
    changes = {**_given(person), **settings}
    take_away(changes, without, _REMOVABLE)
    if not changes:
        raise click.UsageError("Say what to change; `tollgate members update --help` lists it.")
    _show(api.patch(f"{_path(workspace)}/{member_id}", changes), style)


@members.command("remove")
@click.argument("member_id", metavar="ID")
@calls_gateway
def remove_member(api: Api, style: OutputStyle, member_id: str) -> None:
    """Remove a member: all keys and sessions are refused everywhere within five seconds."""
    reply = api.delete(f"/members/{member_id}")
    if style == "json":
        click.echo(as_json(reply))
    elif reply["removed"]:
        click.echo(f"Member {member_id} is removed.")
    else:
        click.echo(f"Member {member_id} was removed before.")


def _path(workspace: str | None) -> str:
    """Return the path of the members of a workspace, or of those of the caller's own."""
    return f"/workspaces/{workspace}/members" if workspace else "/members"


def _given(person: dict[str, str | None]) -> dict[str, Any]:
    return {name: value for name, value in person.items() if value is not None}


def _show(reply: Any, style: OutputStyle) -> None:
    show_one(_row(reply["data"]), _SHOWN, style, data=reply["data"], shape=_MEMBER_SHAPE)
    draw_limits(reply["data"], style)


def _row(member: Any) -> dict[str, str]:
    removed = member["removed_at"]
    return {
        **level_cells(member),
        "role": member["role"],
        "team": member["team_id"] or "",
        "email": member["email"] or "",
        "state": "there" if removed is None else f"removed {removed}",
        "sign_in": "has signed in" if member["signs_in"] else "never signed in",
    }
