"""`tollgate audit`: the audit log of a running gateway."""

from typing import Any, Final

import click
from typing_extensions import override

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.options import with_moments
from tollgate.cli.tables import OutputStyle, show
from tollgate.core.dotted_names import DottedName

_ENTRY_SHAPE: Final = DottedName[type[Any]]("tollgate.web.records.audit_routes:AuditObject")
_DAY_SHAPE: Final = DottedName[type[Any]]("tollgate.web.records.audit_routes:AuditDayObject")
_COLUMNS: Final = ("created_at", "action", "target", "change", "actor", "workspace", "origin")
_PAGE: Final = 1000


class _ListByDefault(click.Group):
    """A group whose command `ls` may be left out."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        begins_with_command = bool(args) and args[0] in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, args if begins_with_command else ["ls", *args])


@click.group(cls=_ListByDefault)
def audit() -> None:
    """List changes to keys, people, credit, workspaces and catalogs, and verify the log."""


@audit.command("ls", epilog="Example: tollgate audit ls --since 7d --actor ana@acme.example")
@click.option("--since", metavar="AGO", help="7d, 12h, a day or a timestamp; 30d by default.")
@click.option("--until", metavar="AGO", help="Same forms as --since; now by default.")
@click.option("--actor", metavar="WHO", help="Id or name of a key, member or process, or an ARN.")
@click.option("--target", metavar="WHAT", help="Key, team, member, entry, workspace or sha.")
@click.option("--kind", type=click.Choice(["change", "access"]), help="Both by default.")
@click.option(
    "--workspace", metavar="ID", help="Workspace, for the operator; all workspaces by default."
)
@calls_gateway
def list_entries(api: Api, style: OutputStyle, **selection: str | None) -> None:
    """List entries, latest first; `ls` may be left out."""
    query = with_moments(selection)
    # The gateway dates each access to the beginning of its hour.
    found = sorted(
        api.pages("/audit", {**query, "limit": _PAGE}, "cursor"),
        key=lambda entry: entry["created_at"],
        reverse=True,
    )
    show([_row(entry) for entry in found], _COLUMNS, style, data=found, shape=_ENTRY_SHAPE)


@audit.command("verify", epilog="Example: tollgate audit verify --since 2026-11-01")
@click.option("--since", metavar="DAY", help="The first day; 30 days ago by default.")
@click.option("--until", metavar="DAY", help="The last day; the last closed day by default.")
@click.option(
    "--workspace", metavar="ID", help="Workspace, for the operator; the whole log by default."
)
@calls_gateway
def verify_days(api: Api, style: OutputStyle, **selection: str | None) -> None:
    """Compare each closed day of the log with its seal.

    The exit status is 1 if an entry was changed, removed or inserted, or if no day is sealed.
    Compare the last hash with one that you noted earlier, or with the exported day: a forger who
    may write the table could also write other seals.
    """
    days = api.get("/audit/days", selection)["data"]
    columns = ("day", "entries", "hash", "problem")
    rows = [{name: "" if day[name] is None else str(day[name]) for name in columns} for day in days]
    show(rows, columns, style, data=days, shape=_DAY_SHAPE)
    if any(day["problem"] for day in days):
        raise click.ClickException("The log differs from its seals.")
    if not any(day["hash"] for day in days):
        raise click.ClickException(
            "None of these days is sealed; `tollgate upkeep rollup` seals days."
        )


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
    """Return the member that made a change, the key unless the member was signed in, and the
    commit.
    """
    key: str = entry["actor_name"] or entry["actor"]
    # Old gateways do not send these fields.
    member: str | None = entry.get("actor_member_id")
    commit = f" at {entry['commit']}" if entry.get("commit") else ""
    if member is None:
        return key + commit
    return (member if entry["actor_type"] == "session" else f"{member} ({key})") + commit


def _explain(before: dict[str, str], after: dict[str, str]) -> str:
    """Return the changed fields, such as `limits.day 5 → 10`; `–` means no value."""
    names = sorted({*before, *after})
    if not before:
        return ", ".join(f"{name} {after[name]}" for name in names)
    return ", ".join(f"{name} {before.get(name, '–')} → {after.get(name, '–')}" for name in names)
