"""`tollgate subjects`: erasures, exports and legal holds of end users, members and workspaces."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, get_args

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.gateway.subject_archive import write_archive
from tollgate.cli.tables import OutputStyle, as_json, show, show_one
from tollgate.core.dotted_names import DottedName
from tollgate.core.records.subjects import PrivacySubjectKind

_ERASURE_SHAPE: Final = DottedName[type[Any]]("tollgate.web.records.subject_shapes:ErasureObject")
_HOLD_SHAPE: Final = DottedName[type[Any]]("tollgate.web.records.subject_shapes:HoldObject")
_ERASURES: Final = ("kind", "subject", "state", "erased", "requested", "finished", "backups_until")
_HOLDS: Final = ("id", "kind", "subject", "reason", "placed", "by", "preserved")

_workspace = click.option(
    "--workspace", metavar="ID", help="Another workspace; only the operator may set it."
)


def _names_subject(command: Callable[..., None]) -> Callable[..., None]:
    """Add the two arguments that name a subject to a command."""
    kind = click.argument("kind", type=click.Choice(get_args(PrivacySubjectKind)))
    return kind(click.argument("subject_id", metavar="ID")(command))


@click.group()
def subjects() -> None:
    """Erase, export or hold the stored data of an end user, a member or a workspace.

    Needs a management key or the session of an owner. `tollgate upkeep subjects` carries out
    the erasures, and keeps data on hold from expiring.
    """


@subjects.command("erase", epilog="Example: tollgate subjects erase user eve@acme")
@_names_subject
@_workspace
@calls_gateway
def erase(
    api: Api,
    style: OutputStyle,
    *,
    kind: PrivacySubjectKind,
    subject_id: str,
    workspace: str | None,
) -> None:
    """Request the erasure of an end user, of a removed member, or of a locked workspace."""
    path = f"{_prefix(workspace)}/erasures"
    erasure = api.post(path, {"kind": kind, "id": subject_id})["data"]
    show_one(_erasure_row(erasure), _ERASURES, style, data=erasure, shape=_ERASURE_SHAPE)


@subjects.command("erasures", epilog="Example: tollgate subjects erasures --json")
@_workspace
@calls_gateway
def list_erasures(api: Api, style: OutputStyle, workspace: str | None) -> None:
    """List the erasures; each finished erasure is a proof, which the audit log also contains."""
    erasures = list(api.pages(f"{_prefix(workspace)}/erasures", {}, "cursor"))
    rows = [_erasure_row(erasure) for erasure in erasures]
    show(rows, _ERASURES, style, data=erasures, shape=_ERASURE_SHAPE)


@subjects.command(
    "hold", epilog='Example: tollgate subjects hold member ana@acme.example --reason "case 7"'
)
@_names_subject
@click.option("--reason", required=True, help="The reason, such as a case number.")
@_workspace
@calls_gateway
def hold(
    api: Api,
    style: OutputStyle,
    *,
    kind: PrivacySubjectKind,
    subject_id: str,
    reason: str,
    workspace: str | None,
) -> None:
    """Place a legal hold, which postpones erasures and keeps stored data from expiring."""
    body = {"kind": kind, "id": subject_id, "reason": reason}
    placed = api.post(f"{_prefix(workspace)}/holds", body)["data"]
    show_one(_hold_row(placed), _HOLDS, style, data=placed, shape=_HOLD_SHAPE)


@subjects.command("holds", epilog="Example: tollgate subjects holds --json")
@_workspace
@calls_gateway
def list_holds(api: Api, style: OutputStyle, workspace: str | None) -> None:
    """List the legal holds."""
    holds = api.get(f"{_prefix(workspace)}/holds")["data"]
    show([_hold_row(placed) for placed in holds], _HOLDS, style, data=holds, shape=_HOLD_SHAPE)


@subjects.command("release", epilog="Example: tollgate subjects release 5g8Z9S3BZqHxGdQ")
@click.argument("hold_id", metavar="HOLD")
@_workspace
@calls_gateway
def release(api: Api, style: OutputStyle, hold_id: str, workspace: str | None) -> None:
    """Release a legal hold; only the operator may release the operator's holds."""
    reply = api.delete(f"{_prefix(workspace)}/holds/{hold_id}")
    click.echo(as_json(reply) if style == "json" else f"The hold {hold_id} is released.")


@subjects.command(
    "export", epilog="Example: tollgate subjects export member ana@acme.example --to ana.zip"
)
@_names_subject
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Path of the new zip archive.",
)
@calls_gateway
def export_subject(
    api: Api, style: OutputStyle, *, kind: PrivacySubjectKind, subject_id: str, target: Path
) -> None:
    """Write the workspace's stored data about a subject to an archive of JSON lines and files.

    The archive's manifest.json states the number of lines and the SHA-256 of each file.
    """
    if target.exists():
        raise click.ClickException(f"{target} exists already.")
    manifest = write_archive(api, kind, subject_id, target)
    rows = [{name: str(value) for name, value in file.items()} for file in manifest["files"]]
    show(rows, ("name", "lines", "bytes", "sha256"), style, data=manifest)


def _prefix(workspace: str | None) -> str:
    return "" if workspace is None else f"/workspaces/{workspace}"


def _erasure_row(erasure: Any) -> dict[str, str]:
    state = "; ".join(erasure["waiting"]) or "open"
    return {
        "kind": erasure["kind"],
        "subject": erasure["subject"],
        "state": "finished" if erasure["finished_at"] else state,
        "erased": ", ".join(f"{count} {name}" for name, count in erasure["erased"].items()),
        "requested": erasure["requested_at"],
        "finished": erasure["finished_at"] or "",
        "backups_until": erasure["backups_until"] or "",
    }


def _hold_row(placed: Any) -> dict[str, str]:
    return {
        "id": placed["id"],
        "kind": placed["kind"],
        "subject": placed["subject"],
        "reason": placed["reason"],
        "placed": placed["placed_at"],
        "by": "operator" if placed["by_operator"] else placed["placed_by"],
        "preserved": placed["preserved_at"] or "not yet",
    }
