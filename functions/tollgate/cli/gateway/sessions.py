"""`tollgate sessions`: the sign-ins of a member."""

from typing import Any, Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.tables import OutputStyle, as_json, show
from tollgate.core.dotted_names import DottedName

_SHAPE: Final = DottedName[type[Any]]("tollgate.web.people.session_routes:MemberSessionObject")
_COLUMNS: Final = ("id", "opened", "renewed", "expires", "renewable", "origin")


@click.group()
def sessions() -> None:
    """List and end the sessions of a member."""


@sessions.command("ls", epilog="Example: tollgate sessions ls ana@acme.example")
@click.argument("member_id", metavar="MEMBER")
@calls_gateway
def list_sessions(api: Api, style: OutputStyle, member_id: str) -> None:
    """List the sessions of a member that have not ended, oldest first."""
    found = list(api.pages(_path(member_id), {}, "cursor"))
    show([_row(each) for each in found], _COLUMNS, style, data=found, shape=_SHAPE)


@sessions.command("end", epilog="Example: tollgate sessions end ana@acme.example --all")
@click.argument("member_id", metavar="MEMBER")
@click.argument("session_id", metavar="[ID]", required=False)
@click.option("--all", "every", is_flag=True, help="End all sessions of the member.")
@calls_gateway
def end_sessions(
    api: Api, style: OutputStyle, *, member_id: str, session_id: str | None, every: bool
) -> None:
    """End one session of a member, or --all: refused everywhere within five seconds."""
    if every == (session_id is not None):
        raise click.UsageError("Give the id of a session, or --all.")
    path = _path(member_id) if session_id is None else f"{_path(member_id)}/{session_id}"
    reply = api.delete(path)
    ended = f"All sessions of {member_id} are" if every else f"Session {session_id} is"
    click.echo(as_json(reply) if style == "json" else f"{ended} ended.")


def _path(member_id: str) -> str:
    return f"/members/{member_id}/sessions"


def _row(session: Any) -> dict[str, str]:
    return {
        "id": session["id"],
        "opened": session["opened_at"],
        "renewed": session["renewed_at"],
        "expires": session["expires_at"],
        "renewable": "yes" if session["renewable"] else "no",
        "origin": session["origin"] or "",
    }
