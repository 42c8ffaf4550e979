"""`tollgate workspaces`: the workspaces in a running gateway, for its operator."""

from typing import Any, Final, get_args

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.options import without_none
from tollgate.cli.tables import OutputStyle, exact, show, show_one
from tollgate.core.dotted_names import DottedName
from tollgate.core.principal import Admission, UsageOn

_WORKSPACE_SHAPE: Final = DottedName[type[Any]](
    "tollgate.web.money.workspace_routes:WorkspaceObject"
)
_COLUMNS: Final = (
    "id",
    "state",
    "admission",
    "budget",
    "pause_at_budget",
    "response_days",
    "file_days",
    "allowed_ips",
    "key_days",
    "usage_on",
    "shards",
    "created_at",
    "credit_limit",
)
# Settings that `--no` removes.
_REMOVABLE: Final = (
    "admission",
    "budget",
    "credit-limit",
    "response-days",
    "file-days",
    "allowed-ips",
    "key-days",
    "usage-on",
)

_admission = click.option(
    "--admission",
    type=click.Choice(get_args(Admission)),
    help="Balance that admits a request: above 0 (positive), or enough for the maximum cost of "
    "the request (covered).",
)
_budget = click.option("--budget", metavar="USD", help="Maximum cost in a UTC month.")
_pause = click.option(
    "--pause-at-budget/--no-pause-at-budget",
    default=None,
    help="Pause the workspace until the end of the month once the budget is spent.",
)
_days = click.option(
    "--response-days",
    type=click.IntRange(1),
    help="Days to store responses for its keys: 1, 7, 30 or 90.",
)
_file_days = click.option(
    "--file-days",
    type=click.IntRange(1, 30),
    help="Days after which uploaded files expire, unless the upload sets another time.",
)
_allowed_ips = click.option(
    "--allowed-ips",
    metavar="NETWORKS",
    help="Addresses and networks from which its keys and sessions may be used, separated by "
    "commas: 192.0.2.7,2001:db8::/32.",
)
_key_days = click.option(
    "--key-days",
    type=click.IntRange(1),
    help="Days after which the secret of a key is refused, unless it is rotated.",
)
_usage_on = click.option(
    "--usage-on",
    type=click.Choice(get_args(UsageOn)),
    help="Frame of chat streams that contains the usage: the finish frame, for clients that cannot "
    "read a frame with empty `choices`, or one more frame after it (frame).",
)


@click.group()
def workspaces() -> None:
    """List, create, change and lock workspaces; needs the operator's management key."""


@workspaces.command("ls", epilog="Example: tollgate workspaces ls")
@calls_gateway
def list_workspaces(api: Api, style: OutputStyle) -> None:
    """List the workspaces by name."""
    found = list(api.pages("/workspaces", {}, "cursor"))
    show([_row(each) for each in found], _COLUMNS, style, data=found, shape=_WORKSPACE_SHAPE)


@workspaces.command("show", epilog="Example: tollgate workspaces show search")
@click.argument("workspace_id", metavar="ID")
@calls_gateway
def show_workspace(api: Api, style: OutputStyle, workspace_id: str) -> None:
    """Show one workspace; `tollgate credits show --workspace` shows its money."""
    _show(api.get(f"/workspaces/{workspace_id}"), style)


@workspaces.command("create", epilog="Example: tollgate workspaces create search --budget 500")
@click.argument("workspace_id", metavar="ID")
@_admission
@_budget
@_pause
@_days
@_file_days
@_allowed_ips
@_key_days
@_usage_on
@calls_gateway
def create_workspace(api: Api, style: OutputStyle, *, workspace_id: str, **settings: Any) -> None:
    """Create a workspace without credit or keys."""
    _show(api.post("/workspaces", {"id": workspace_id, **without_none(settings)}), style)


@workspaces.command("update", epilog="Example: tollgate workspaces update search --no budget")
@click.argument("workspace_id", metavar="ID")
@_admission
@_budget
@_pause
@_days
@_file_days
@_allowed_ips
@_key_days
@_usage_on
@click.option(
    "--credit-limit",
    metavar="USD",
    help="Credit line: amount that the workspace may spend before it pays. The used part cannot "
    "be removed.",
)
@click.option(
    "--no", "without", multiple=True, type=click.Choice(_REMOVABLE), help="Remove a setting."
)
@calls_gateway
def update_workspace(
    api: Api, style: OutputStyle, *, workspace_id: str, without: tuple[str, ...], **settings: Any
) -> None:
    """Change the given settings of a workspace."""
    changes = {**without_none(settings), **{name.replace("-", "_"): None for name in without}}
    if not changes:
        raise click.UsageError(
            "Give at least one change; `tollgate workspaces update --help` lists them."
        )
    _show(api.patch(f"/workspaces/{workspace_id}", changes), style)


@workspaces.command("lock", epilog="Example: tollgate workspaces lock search")
@click.argument("workspace_id", metavar="ID")
@calls_gateway
def lock_workspace(api: Api, style: OutputStyle, workspace_id: str) -> None:
    """Refuse all further requests from a workspace."""
    _show(api.patch(f"/workspaces/{workspace_id}", {"locked": True}), style)


@workspaces.command("unlock", epilog="Example: tollgate workspaces unlock search")
@click.argument("workspace_id", metavar="ID")
@calls_gateway
def unlock_workspace(api: Api, style: OutputStyle, workspace_id: str) -> None:
    """Admit requests from a locked workspace again."""
    _show(api.patch(f"/workspaces/{workspace_id}", {"locked": False}), style)


def _show(reply: Any, style: OutputStyle) -> None:
    show_one(_row(reply["data"]), _COLUMNS, style, data=reply["data"], shape=_WORKSPACE_SHAPE)


def _row(workspace: Any) -> dict[str, str]:
    state = "locked" if workspace["locked"] else "paused" if workspace["paused"] else "open"
    return {
        "id": workspace["id"],
        "state": state,
        "admission": workspace["admission"] or "",
        "budget": "" if workspace["budget"] is None else exact(workspace["budget"]),
        "pause_at_budget": "yes" if workspace["pause_at_budget"] else "no",
        "credit_limit": exact(workspace["credit_limit"]) if workspace["credit_limit"] else "",
        "response_days": str(workspace["response_days"] or ""),
        "file_days": str(workspace["file_days"] or ""),
        # Older gateways do not send these fields.
        "allowed_ips": workspace.get("allowed_ips") or "",
        "key_days": str(workspace.get("key_days") or ""),
        "usage_on": workspace.get("usage_on") or "",
        "shards": str(workspace["shards"]),
        "created_at": workspace["created_at"],
    }
