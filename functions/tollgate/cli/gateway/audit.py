"""`tollgate audit`: the audit log of a running gateway."""

from typing import Any, Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.options import with_moments
from tollgate.cli.tables import OutputStyle, show
from tollgate.core.dotted_names import DottedName

_ENTRY_SHAPE: Final = DottedName[type[Any]]("tollgate.web.records.audit_routes:AuditObject")
_COLUMNS: Final = ("created_at", "action", "target", "change", "actor", "workspace", "origin")
_PAGE: Final = 1000


@click.command()
@click.option("--since", metavar="AGO", help="7d, 12h, a day or a timestamp; 30d by default.")
@click.option("--until", metavar="AGO", help="Same forms as --since; now by default.")
@click.option("--actor", metavar="WHO", help="Id or name of a key, member or process, or an ARN.")
@click.option("--target", metavar="WHAT", help="Key, team, member, entry, workspace or sha.")
@click.option(
    "--workspace", metavar="ID", help="Workspace, for the operator; all workspaces by default."
)
@calls_gateway
def audit(api: Api, style: OutputStyle, **selection: str | None) -> None:
    """List changes to keys, people, credit, workspaces and catalogs, latest first."""
    query = with_moments(selection)
    found = list(api.pages("/audit", {**query, "limit": _PAGE}, "cursor"))
    show([_row(entry) for entry in found], _COLUMNS, style, data=found, shape=_ENTRY_SHAPE)


def _row(entry: Any) -> dict[str, str]:
    return {
        "created_at": entry["created_at"],
        "action": entry["action"],
        "target": entry["target_name"] or entry["target"],
        "change": _explain(entry["before"], entry["after"]),
        "actor": _actor(entry),
        "workspace": entry["workspace_id"] or "",
        "origin": entry["origin"] or "",
    }


def _actor(entry: Any) -> str:
    """Return the member that made a change; and the key, unless the member was signed in."""
    key: str = entry["actor_name"] or entry["actor"]
    # Old gateways do not send this field.
    member: str | None = entry.get("actor_member_id")
    if member is None:
        return key
    return member if entry["actor_type"] == "session" else f"{member} ({key})"


def _explain(before: dict[str, str], after: dict[str, str]) -> str:
    """Return the changed fields, such as `limits.day 5 → 10`; `–` means no value."""
    names = sorted({*before, *after})
    if not before:
        return ", ".join(f"{name} {after[name]}" for name in names)
    return ", ".join(f"{name} {before.get(name, '–')} → {after.get(name, '–')}" for name in names)
