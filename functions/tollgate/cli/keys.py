"""`tollgate keys`: make, list, rotate and stop keys of a running gateway."""

from typing import Any, Final

import click

from tollgate.cli.http import Api
from tollgate.cli.tables import Style, as_json, calls_gateway, exact, show

_COLUMNS: Final = ("id", "name", "secret", "role", "state", "usage", "held", "limits", "created")
_HOUR_S: Final = 3_600
_UNITS_S: Final = {"m": 60, "h": _HOUR_S, "d": 24 * _HOUR_S}


@click.group()
def keys() -> None:
    """Keys of the workspace."""


@keys.command("ls")
@calls_gateway
def list_keys(api: Api, style: Style) -> None:
    """List the keys, oldest first."""
    found = list(api.pages("/keys", {}, "cursor"))
    show([_row(key) for key in found], _COLUMNS, style, data=found)


@keys.command("show")
@click.argument("name")
@calls_gateway
def show_key(api: Api, style: Style, name: str) -> None:
    """Show the key with this NAME or id."""
    key = _named(api, name)
    show([_row(key)], _COLUMNS, style, data=key)


@keys.command("create")
@click.argument("name")
@click.option("--role", type=click.Choice(["inference", "management"]), default="inference")
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="PERIOD=USD",
    help="Spending limit per day, week, month or in total.",
)
@click.option("--model", "models", multiple=True, help="Glob of models it may use.")
@click.option("--expires", metavar="MOMENT", help="When it ends: 2027-01-01T00:00:00Z.")
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME=VALUE",
    help="Label to group spending by: team, member, environment.",
)
@calls_gateway
def create_key(
    api: Api,
    style: Style,
    *,
    name: str,
    role: str,
    limits: tuple[str, ...],
    models: tuple[str, ...],
    expires: str | None,
    labels: tuple[str, ...],
) -> None:
    """Create a key; its secret is shown this once."""
    body: dict[str, object] = {"name": name, "role": role}
    if limits:
        body["limits"] = dict(_pair(text, "--limit") for text in limits)
    if models:
        body["models"] = list(models)
    if expires:
        body["expires_at"] = expires
    if labels:
        body["labels"] = dict(_pair(text, "--label") for text in labels)
    _tell_secret(api.post("/keys", body), style)


@keys.command("rotate")
@click.argument("name")
@click.option(
    "--grace",
    default="24h",
    show_default=True,
    metavar="DURATION",
    help="How long the old secret still works: 30m, 24h, 7d, 0h.",
)
@calls_gateway
def rotate_key(api: Api, style: Style, *, name: str, grace: str) -> None:
    """Give a key a new secret; id, limits and spending stay."""
    key = _named(api, name)
    reply = api.post(f"/keys/{key['id']}/rotate", {"grace_s": _seconds(grace)})
    _tell_secret(reply, style)
    if style == "auto":
        click.echo(f"The old secret works for another {grace}.", err=True)


@keys.command("disable")
@click.argument("name")
@calls_gateway
def disable_key(api: Api, style: Style, name: str) -> None:
    """Stop a key: it is refused everywhere within five seconds."""
    key = _named(api, name)
    reply = api.patch(f"/keys/{key['id']}", {"disabled": True})
    show([_row(reply["data"])], _COLUMNS, style, data=reply["data"])


def _named(api: Api, name: str) -> Any:
    """The key with this id, or else the only one with this name."""
    found = [key for key in api.pages("/keys", {}, "cursor") if name in (key["id"], key["name"])]
    exact_id = [key for key in found if key["id"] == name]
    match exact_id or found:
        case [key]:
            return key
        case []:
            problem = f"There is no key named {name}."
        case _:
            problem = f"{len(found)} keys are named {name}: say the id of one."
    raise click.ClickException(f"{problem}\n`tollgate keys ls` shows them all.")


def _row(key: Any) -> dict[str, str]:
    limits = (f"{period} {exact(limit)}" for period, limit in key["limits"].items())
    return {
        "id": key["id"],
        "name": key["name"],
        "secret": key["label"],
        "role": key["role"],
        "state": "disabled" if key["disabled"] else "on",
        "usage": exact(key["usage"]),
        "held": exact(key["held"]),
        "limits": ", ".join(limits),
        "created": key["created_at"],
    }


def _tell_secret(reply: Any, style: Style) -> None:
    if style == "json":
        click.echo(as_json(reply))
        return
    # The secret alone on standard output: `TOLLGATE_KEY=$(tollgate keys create ci)`.
    key = reply["data"]
    click.echo(f"Key {key['name']} ({key['id']}). Its secret is shown this once:", err=True)
    click.echo(reply["key"])


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise click.UsageError(f"{option}: write {text!r} as name=value.")
    return name, value


def _seconds(text: str) -> int:
    if text[-1:] not in _UNITS_S or not text[:-1].isdigit():
        raise click.UsageError(f"--grace: write {text!r} as a number of m, h or d.")
    return int(text[:-1]) * _UNITS_S[text[-1]]
