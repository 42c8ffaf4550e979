"""`tollgate teams` and `tollgate members`: the same commands for teams and members."""

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

import click
from msgspec import Struct

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.gateway.limits import draw_limits, level_cells, level_settings, take_away
from tollgate.cli.options import without_none
from tollgate.cli.tables import OutputStyle, as_json, show, show_one
from tollgate.core.dotted_names import DottedName
from tollgate.core.principal import MemberRole

_Option = Callable[[Callable[..., None]], Callable[..., None]]
_LEVEL_ID: Final = click.argument("level_id", metavar="ID")


class _Level(Struct, frozen=True, kw_only=True):
    """The parts of the commands that differ between teams and members (levels)."""

    name: str
    end: str
    """The name of the command that ends a level: `delete` or `remove`."""
    gone: str
    """State of an ended level, and the `ls` option that lists them: `deleted` or `removed`."""
    shape: DottedName[type[Any]]
    """Model of the API's reply, imported only for CSV."""
    listed: tuple[str, ...]
    shown: tuple[str, ...]
    cells: Callable[[Any], dict[str, str]]
    help: Mapping[str, str]
    """Help texts by command; the key "" has the help for the group."""
    arguments: Mapping[str, str]
    """Arguments of the example by command."""
    removable: Mapping[str, str] = {}
    """Further settings that `--no` removes: their fields, by the argument of `--no`."""
    filters: tuple[_Option, ...] = ()
    """Options of `ls` that filter levels."""
    places: tuple[_Option, ...] = ()
    """Options that name the workspace."""
    settings: tuple[_Option, ...] = ()
    """Further options of `create` and `update`."""

    def example(self, command: str) -> str:
        """Return the line with which the help of `command` ends."""
        return f"Example: tollgate {self.name}s {command} {self.arguments[command]}"

    def path(self, workspace: str | None) -> str:
        """Return the API path for levels in `workspace`, or in the caller's own workspace."""
        return f"/workspaces/{workspace}/{self.name}s" if workspace else f"/{self.name}s"

    def row(self, level: Any) -> dict[str, str]:
        """Return the table cells for a level."""
        end = level[f"{self.gone}_at"]
        there = "disabled" if level.get("disabled") else "there"
        state = there if end is None else f"{self.gone} {end}"
        return {**level_cells(level), "state": state, **self.cells(level)}

    def show(self, reply: Any, style: OutputStyle) -> None:
        """Print a level, with a bar for each limit."""
        data = reply["data"]
        show_one(self.row(data), self.shown, style, data=data, shape=self.shape)
        draw_limits(data, style)


def _with(*options: _Option) -> _Option:
    """Return a decorator that adds the options to a command."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _commands(level: _Level) -> click.Group:
    """Return the command group for teams or members."""
    group = click.Group(f"{level.name}s", help=level.help[""])
    _add_reading(group, level)
    _add_writing(group, level)
    return group


def _add_reading(group: click.Group, level: _Level) -> None:
    @group.command("ls", help=level.help["ls"], epilog=level.example("ls"))
    @_with(*level.filters)
    @click.option(
        f"--{level.gone}", "gone", is_flag=True, help=f"Also list {level.gone} {group.name}."
    )
    @_with(*level.places)
    @calls_gateway
    def list_levels(
        api: Api,
        style: OutputStyle,
        *,
        gone: bool,
        workspace: str | None = None,
        **only: str | None,
    ) -> None:
        query = {**only, level.gone: "true" if gone else None}
        found = list(api.pages(level.path(workspace), query, "cursor"))
        columns = (*level.listed, "state") if gone else level.listed
        show([level.row(each) for each in found], columns, style, data=found, shape=level.shape)

    @group.command("show", help=level.help["show"], epilog=level.example("show"))
    @_LEVEL_ID
    @calls_gateway
    def show_level(api: Api, style: OutputStyle, level_id: str) -> None:
        level.show(api.get(f"{level.path(None)}/{level_id}"), style)


def _add_writing(group: click.Group, level: _Level) -> None:
    @group.command("create", help=level.help["create"], epilog=level.example("create"))
    @_LEVEL_ID
    @_with(*level.places, *level.settings)
    @level_settings
    @calls_gateway
    def create_level(
        api: Api,
        style: OutputStyle,
        *,
        level_id: str,
        settings: dict[str, Any],
        workspace: str | None = None,
        **options: str | None,
    ) -> None:
        body = {"id": level_id, **without_none(options), **settings}
        level.show(api.post(level.path(workspace), body), style)

    @group.command("update", help=level.help["update"], epilog=level.example("update"))
    @_LEVEL_ID
    @click.option("--no", "without", multiple=True, metavar="SETTING", help="Remove a setting.")
    @_with(*level.places, *level.settings)
    @level_settings
    @calls_gateway
    def update_level(
        api: Api,
        style: OutputStyle,
        *,
        level_id: str,
        without: tuple[str, ...],
        settings: dict[str, Any],
        workspace: str | None = None,
        **options: str | None,
    ) -> None:
        changes = {**without_none(options), **settings}
        take_away(changes, without, level.removable)
        if not changes:
            usage = f"`tollgate {group.name} update --help` lists them."
            raise click.UsageError(f"Give at least one change; {usage}")
        level.show(api.patch(f"{level.path(workspace)}/{level_id}", changes), style)

    @group.command(level.end, help=level.help[level.end], epilog=level.example(level.end))
    @_LEVEL_ID
    @calls_gateway
    def end_level(api: Api, style: OutputStyle, level_id: str) -> None:
        reply = api.delete(f"{level.path(None)}/{level_id}")
        ended = f"is {level.gone}" if reply[level.gone] else f"was {level.gone} before"
        sentence = f"{level.name.capitalize()} {level_id} {ended}."
        click.echo(as_json(reply) if style == "json" else sentence)


def _member_cells(member: Any) -> dict[str, str]:
    return {
        "role": member["role"],
        "team": member["team_id"] or "",
        "email": member["email"] or "",
        "sign_in": "has signed in" if member["signs_in"] else "never signed in",
    }


_RIGHTS: Final = (
    "models",
    "tier",
    "prompt_policy",
    "guardrails",
    "rates",
    "held",
    "holds",
    "created",
    "limits",
    "left",
)

teams: Final = _commands(
    _Level(
        name="team",
        end="delete",
        gone="deleted",
        shape=DottedName("tollgate.web.people.people_shapes:TeamObject"),
        listed=("id", "left", "limits", "held", "name", "created"),
        shown=("id", "name", "state", *_RIGHTS),
        cells=lambda _: {},
        help={
            "": "List, create, limit and delete teams in the workspace.",
            "ls": "List the teams by id, with their remaining limits.",
            "show": "Show a team's rights and limits, with spent, held and remaining amounts.",
            "create": "Create a team. ID: lower-case letters, digits, dots, dashes, "
            "underscores; at most 64.",
            "update": "Change the given settings of a team; --no day removes its daily limit.",
            "delete": "Delete a team that has no keys and members; its spending stays on record.",
        },
        arguments={
            "ls": "--deleted",
            "show": "search",
            "create": "search --limit month=500",
            "update": "search --no day",
            "delete": "search",
        },
    )
)
members: Final = _commands(
    _Level(
        name="member",
        end="remove",
        gone="removed",
        shape=DottedName("tollgate.web.people.people_shapes:MemberObject"),
        listed=("id", "role", "team", "left", "limits", "held", "name", "created"),
        shown=("id", "name", "email", "role", "team", "state", "sign_in", *_RIGHTS),
        cells=_member_cells,
        help={
            "": "List, add, limit and remove members of the workspace.",
            "ls": "List the members by id, with their remaining limits.",
            "show": "Show a member's role and limits, with spent, held and remaining amounts.",
            "create": "Add a member. ID: letters, digits and .-_@+, at most 128, such as an "
            "e-mail address.",
            "update": "Change the given settings of a member; --no team removes the team.",
            "remove": "Remove a member; all servers refuse the member's keys and sessions within "
            "five seconds.",
        },
        arguments={
            "ls": "--team search",
            "show": "ana@acme.example",
            "create": "ana@acme.example --role developer",
            "update": "ana@acme.example --disable",
            "remove": "ana@acme.example",
        },
        removable={"team": "team_id", "email": "email"},
        filters=(click.option("--team", metavar="ID", help="Only members of this team."),),
        places=(
            click.option(
                "--workspace", metavar="ID", help="Workspace of the member, for the operator."
            ),
        ),
        settings=(
            click.option(
                "--role",
                type=click.Choice(get_args(MemberRole)),
                help="Rights of the member after sign-in; developer by default.",
            ),
            click.option(
                "--team",
                "team_id",
                metavar="ID",
                help="Team for the member's keys without a team.",
            ),
            click.option("--email", help="E-mail address that may identify the member at sign-in."),
            click.option(
                "--disable/--enable",
                "disabled",
                default=None,
                help="Refuse the member's keys and sessions, or accept them again.",
            ),
        ),
    )
)
