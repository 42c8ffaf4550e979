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
    """Give a command the arguments that name a subject."""
    kind = click.argument("kind", type=click.Choice(get_args(PrivacySubjectKind)))
    return kind(click.argument("subject_id", metavar="ID")(command))


@click.group()
def subjects() -> None:
    """Request erasures, export and hold what is stored of an end user, a member or a workspace.

    Needs a management key or the session of an owner. `tollgate upkeep subjects` carries out
    erasures, and keeps what is on hold from expiring.
    """


@subjects.command("erase")
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


@subjects.command("erasures")
@_workspace
@calls_gateway
def list_erasures(api: Api, style: OutputStyle, workspace: str | None) -> None:
    """List the erasures; a finished one is the proof, and the audit log has it too."""
    found = list(api.pages(f"{_prefix(workspace)}/erasures", {}, "cursor"))
    rows = [_erasure_row(each) for each in found]
    show(rows, _ERASURES, style, data=found, shape=_ERASURE_SHAPE)


@subjects.command("hold")
@_names_subject
@click.option("--reason", required=True, help="Such as the number of a case.")
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
    """Place a legal hold, which postpones erasures and keeps contents from expiring."""
    body = {"kind": kind, "id": subject_id, "reason": reason}
    placed = api.post(f"{_prefix(workspace)}/holds", body)["data"]
    show_one(_hold_row(placed), _HOLDS, style, data=placed, shape=_HOLD_SHAPE)


@subjects.command("holds")
@_workspace
@calls_gateway
def list_holds(api: Api, style: OutputStyle, workspace: str | None) -> None:
    """List the legal holds."""
    found = api.get(f"{_prefix(workspace)}/holds")["data"]
    show([_hold_row(each) for each in found], _HOLDS, style, data=found, shape=_HOLD_SHAPE)


@subjects.command("release")
@click.argument("hold_id", metavar="HOLD")
@_workspace
@calls_gateway
def release(api: Api, style: OutputStyle, hold_id: str, workspace: str | None) -> None:
    """Release a legal hold; only the operator releases the operator's holds."""
    reply = api.delete(f"{_prefix(workspace)}/holds/{hold_id}")
    click.echo(as_json(reply) if style == "json" else f"The hold {hold_id} is released.")


@subjects.command("export")
@_names_subject
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The zip archive to write; it must not exist.",
)
@calls_gateway
def export_subject(
    api: Api, style: OutputStyle, *, kind: PrivacySubjectKind, subject_id: str, target: Path
) -> None:
    """Write what the workspace stores of a subject to an archive of JSON lines and files.

    The archive's manifest.json has the number of lines and the SHA-256 of each file.
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


def _hold_row(held: Any) -> dict[str, str]:
    return {
        "id": held["id"],
        "kind": held["kind"],
        "subject": held["subject"],
        "reason": held["reason"],
        "placed": held["placed_at"],
        "by": "operator" if held["by_operator"] else held["placed_by"],
        "preserved": held["preserved_at"] or "not yet",
    }
