"""`tollgate keys`: create, list, change, rotate, disable and delete keys in a running gateway."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import wraps
from typing import Any, Final, get_args

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.gateway.limits import draw_levels, draw_limits, explain_holds, split_pair
from tollgate.cli.tables import OutputStyle, as_json, exact, show, show_one
from tollgate.core.clock import SystemClock
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import RequestError
from tollgate.core.principal import KeyRole
from tollgate.stores.rules.key_names import KeyName, find_key_id
from tollgate.stores.rules.key_settings import PLAIN_SETTINGS
from tollgate.stores.rules.periods import PERIODS

_KEY_SHAPE: Final = DottedName[type[Any]]("tollgate.web.keys.key_shapes:KeyObject")
_LISTED: Final = ("name", "id", "state", "role", "usage", "limits", "held", "secret", "created")
_BELONGS: Final = ("team", "member")
# Columns for a single key.
_SHOWN: Final = (
    *_LISTED,
    "holds",
    *_BELONGS,
    "left",
    "models",
    "tier",
    "rates",
    "expires",
    *("allowed_ips", "prompt_policy", "guardrails", "usage_on"),
    "secret_created",
    "labels",
    "content",
    "responses",
    "last_used",
    "old_secret",
)
# Fields of the settings that `--no` removes, by the argument of `--no`.
_REMOVABLE: Final = {
    "models": "models",
    "expires": "expires_at",
    **{
        setting.offer.option: name
        for name, setting in PLAIN_SETTINGS.items()
        if setting.is_optional
    },
}
_OTHER_LIMITS: Final = {"max_cost": "request", "session_budget": "session", "warn_at": "warn %"}
_LABELS: Final = ("team", "member", "environment")
_HOUR_S: Final = 3_600
_UNITS_S: Final = {"m": 60, "h": _HOUR_S, "d": 24 * _HOUR_S}


_workspace = click.option(
    "--workspace", metavar="ID", help="Workspace of the key; only the operator may set it."
)


@click.group()
def keys() -> None:
    """List, create, change, rotate and delete keys in the workspace."""


@keys.command("ls", epilog="Example: tollgate keys ls --team search")
@click.option("--team", metavar="ID", help="Only keys of this team.")
@click.option("--member", metavar="ID", help="Only keys of this member.")
@_workspace
@calls_gateway
def list_keys(
    api: Api, style: OutputStyle, *, workspace: str | None, **selection: str | None
) -> None:
    """List the keys, oldest first."""
    found = list(api.pages(_path(workspace), selection, "cursor"))
    columns = (*_LISTED, *_BELONGS)
    show([_row(key) for key in found], columns, style, data=found, shape=_KEY_SHAPE)


@keys.command("show", epilog="Example: tollgate keys show ci")
@click.argument("name")
@_workspace
@calls_gateway
def show_key(api: Api, style: OutputStyle, name: str, workspace: str | None) -> None:
    """Show rights, limits and spending of the key with the name or id NAME."""
    key = _find_key(api, name, workspace)
    show_one(_row(key), _SHOWN, style, data=key, shape=_KEY_SHAPE)
    draw_limits(key, style)


@keys.command("whoami", epilog="Example: tollgate keys whoami --json")
@calls_gateway
def show_own_key(api: Api, style: OutputStyle) -> None:
    """Show the key in TOLLGATE_KEY, and what is left of its team's and member's limits."""
    key = api.get("/key")["data"]
    show_one(_row(key), _SHOWN, style, data=key, shape=_KEY_SHAPE)
    draw_limits(key, style)
    draw_levels(key, style)


def _plain_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each plain setting."""
    # Options are added in reverse, because `--help` lists the last added option first.
    for name, setting in reversed(list(PLAIN_SETTINGS.items())):
        is_number = setting.type in (int, int | None)
        command = click.option(
            f"--{setting.offer.option}",
            name,
            type=int if is_number else str,
            help=setting.offer.text,
        )(command)
    return command


def _settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for a key's settings, passed as `settings` in the API's form."""

    @click.option(
        "--limit",
        "limits",
        multiple=True,
        metavar="PERIOD=USD",
        help="Spending limit for day, week, month or total.",
    )
    @click.option("--model", "models", multiple=True, help="Glob of models that the key may use.")
    @_plain_options
    @click.option("--expires", "expires_at", metavar="MOMENT", help="2027-01-01T00:00:00Z.")
    @click.option(
        "--label",
        "labels",
        multiple=True,
        metavar="NAME=VALUE",
        help="Label to group spending by: team, member or environment.",
    )
    @wraps(command)
    def called(
        *,
        limits: tuple[str, ...],
        models: tuple[str, ...],
        labels: tuple[str, ...],
        **arguments: Any,
    ) -> None:
        pairs = {
            "limits": dict(split_pair(text, "--limit") for text in limits),
            "models": list(models),
            "labels": dict(split_pair(text, "--label", _LABELS) for text in labels),
        }
        chosen = {name: arguments.pop(name) for name in (*PLAIN_SETTINGS, "expires_at")}
        # An option that is not given is None or empty; zero is a value, which the API validates.
        settings = {
            name: value
            for name, value in {**chosen, **pairs}.items()
            if value is not None and value not in ({}, [])
        }
        command(settings=settings, **arguments)

    return called


@keys.command("create", epilog="Example: tollgate keys create ci --limit month=50")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(get_args(KeyRole)),
    default="inference",
    show_default=True,
    help="inference: generate; read: list; management: list and change.",
)
@_workspace
@_settings
@calls_gateway
def create_key(
    api: Api,
    style: OutputStyle,
    *,
    name: str,
    role: str,
    workspace: str | None,
    settings: dict[str, Any],
) -> None:
    """Create a key; its secret is shown only this once."""
    _tell_secret(api.post(_path(workspace), {"name": name, "role": role, **settings}), style)


@keys.command("update", epilog="Example: tollgate keys update ci --rpm 120")
@click.argument("name")
@click.option("--rename", metavar="NAME")
@click.option("--no", "without", multiple=True, metavar="SETTING", help="Remove a setting.")
@_settings
@calls_gateway
def update_key(
    api: Api,
    style: OutputStyle,
    *,
    name: str,
    rename: str | None,
    without: tuple[str, ...],
    settings: dict[str, Any],
) -> None:
    """Change the given settings of a key; --no tier removes its tier, --no day its daily limit."""
    key = _find_key(api, name)
    _take_away(settings, without, key)
    if rename:
        settings["name"] = rename
    if not settings:
        raise click.UsageError(
            "Give at least one change; `tollgate keys update --help` lists them."
        )
    reply = api.patch(f"/keys/{key['id']}", settings)
    show_one(_row(reply["data"]), _SHOWN, style, data=reply["data"], shape=_KEY_SHAPE)


@keys.command("rotate", epilog="Example: tollgate keys rotate ci --grace 7d")
@click.argument("name")
@click.option(
    "--grace",
    default="24h",
    show_default=True,
    metavar="DURATION",
    help="Time until the old secret stops working, such as 30m, 24h, 7d or 0h.",
)
@calls_gateway
def rotate_key(api: Api, style: OutputStyle, *, name: str, grace: str) -> None:
    """Give a key a new secret; its id, limits and spending stay."""
    key = _find_key(api, name)
    reply = api.post(f"/keys/{key['id']}/rotate", {"grace_s": _seconds(grace)})
    _tell_secret(reply, style)
    if style == "auto":
        click.echo(f"The old secret works for another {grace}.", err=True)


@keys.command("disable", epilog="Example: tollgate keys disable ci")
@click.argument("name")
@_workspace
@calls_gateway
def disable_key(api: Api, style: OutputStyle, name: str, workspace: str | None) -> None:
    """Disable a key; all servers refuse the key within five seconds."""
    _switch(api, style, name, workspace, disabled=True)


@keys.command("enable", epilog="Example: tollgate keys enable ci")
@click.argument("name")
@_workspace
@calls_gateway
def enable_key(api: Api, style: OutputStyle, name: str, workspace: str | None) -> None:
    """Enable a disabled key."""
    _switch(api, style, name, workspace, disabled=False)


@keys.command("delete", epilog="Example: tollgate keys delete ci")
@click.argument("name")
@calls_gateway
def delete_key(api: Api, style: OutputStyle, name: str) -> None:
    """Delete a key permanently; its spending stays on record."""
    key = _find_key(api, name)
    reply = api.delete(f"/keys/{key['id']}")
    if style == "json":
        click.echo(as_json(reply))
    elif reply["deleted"]:
        click.echo(f"Key {key['name']} ({key['id']}) is deleted.")
    else:
        raise click.ClickException(
            f"Key {key['name']} ({key['id']}) is now refused, but one of its requests is still "
            "running.\nRepeat the command after that request has ended, to delete the key."
        )


def _path(workspace: str | None) -> str:
    """Return the API path for keys in `workspace`, or in the caller's own workspace."""
    return f"/workspaces/{workspace}/keys" if workspace else "/keys"


def _switch(
    api: Api, style: OutputStyle, name: str, workspace: str | None, *, disabled: bool
) -> None:
    key = _find_key(api, name, workspace)
    reply = api.patch(f"{_path(workspace)}/{key['id']}", {"disabled": disabled})
    show_one(_row(reply["data"]), _LISTED, style, data=reply["data"], shape=_KEY_SHAPE)


def _take_away(settings: dict[str, Any], without: tuple[str, ...], key: Any) -> None:
    """Set to null each setting, period or label that `--no` names.

    `--no team` removes the key from its team or else its label `team`; `--no member` likewise.
    """
    for name in without:
        if name in PERIODS:
            settings.setdefault("limits", {})[name] = None
        elif name in _BELONGS and key.get(_REMOVABLE[name]) is not None:
            settings[_REMOVABLE[name]] = None
        elif name in _LABELS:
            settings.setdefault("labels", {})[name] = None
        elif name in _REMOVABLE:
            settings[_REMOVABLE[name]] = None
        else:
            known = ", ".join([*PERIODS, *_LABELS, *_REMOVABLE])
            raise click.UsageError(f"--no: {name!r} is not one of {known}.")


def _find_key(api: Api, name: str, workspace: str | None = None) -> Any:
    """Return the key with this id or name; raise ClickException unless one key matches."""
    listed = {key["id"]: key for key in api.pages(_path(workspace), {}, "cursor")}
    try:
        names = [KeyName(key["id"], key["name"]) for key in listed.values()]
        return listed[find_key_id(names, name, param="key")]
    except RequestError as unknown:
        raise click.ClickException(
            f"{unknown.message}\n`tollgate keys ls` shows all keys."
        ) from unknown


def _row(key: Any) -> dict[str, str]:
    limits = [f"{period} {exact(limit)}" for period, limit in key["limits"].items()]
    # Older gateways do not send these fields.
    for name, what in _OTHER_LIMITS.items():
        if key.get(name) is not None:
            limits.append(f"{what} {exact(key[name])}")
    labels = (f"{name}={label}" for name, label in key["labels"].items())
    old, used = key["old_secret"], (key["last_used_at"], key.get("last_address"))
    days, stored = key["content_days"], key["response_days"]
    return {
        "id": key["id"],
        "name": key["name"],
        "secret": key["label"],
        "role": key["role"],
        "state": _state(key),
        "usage": exact(key["usage"]),
        "held": exact(key["held"]),
        "holds": explain_holds(key),
        "limits": ", ".join(limits),
        "created": key["created_at"],
        # Older gateways do not send these fields.
        "team": key.get("team_id") or "",
        "member": key.get("member_id") or "",
        "left": ", ".join(_explain_left(key)),
        "models": "all" if key["models"] is None else ", ".join(key["models"]),
        "tier": key["tier"] or "",
        "rates": ", ".join(_explain_rates(key)),
        "expires": key["expires_at"] or "never",
        # Older gateways do not send these fields.
        "allowed_ips": key.get("allowed_ips") or "",
        **{name: key.get(name) or "" for name in ("prompt_policy", "guardrails")},
        "usage_on": key.get("usage_on") or "as in the workspace",
        "secret_created": key.get("secret_created_at") or "",
        "labels": ", ".join(labels),
        "content": "not stored" if days is None else f"stored for {days} days",
        "responses": "as in the workspace" if stored is None else f"stored for {stored} days",
        "last_used": " from ".join(filter(None, used)) or "never",
        "old_secret": "" if old is None else f"{old['label']} until {old['expires_at']}",
    }


def _explain_left(key: Any) -> Iterator[str]:
    """Yield the remaining amount of each limit, and when the limit resets."""
    for period, remaining in key["limits_remaining"].items():
        reset = key["limits_reset_at"][period]
        yield f"{period} {exact(remaining)}" + (f" until {reset}" if reset else "")


def _explain_rates(key: Any) -> Iterator[str]:
    """Yield the key's own rate limits, which apply in addition to those of its tier."""
    yield f"{key['requests_per_minute']} requests/min"
    yield f"burst {key['burst']}"
    if key["tokens_per_minute"] is not None:
        yield f"{key['tokens_per_minute']} tokens/min"
    if key["concurrency"] is not None:
        yield f"{key['concurrency']} at a time"
    if key.get("session_requests") is not None:
        yield f"{key['session_requests']} a session"
    for it in key.get("quotas_usage", ()):
        of = f"{exact(it['limit'])} {it['unit']}/{it['per']}"
        yield f"{exact(it['used'])} of {of}" + (f" of {it['models']}" if it["models"] else "")


def _state(key: Any) -> str:
    """Return `on`, `disabled` or `expired`."""
    if key["disabled"]:
        return "disabled"
    ends = key["expires_at"]
    is_over = ends and datetime.fromisoformat(ends).timestamp() <= SystemClock().now_s()
    return "expired" if is_over else "on"


def _tell_secret(reply: Any, style: OutputStyle) -> None:
    if style == "json":
        click.echo(as_json(reply))
        return
    # Standard output has only the secret, for `TOLLGATE_KEY=$(tollgate keys create ci)`.
    key = reply["data"]
    click.echo(f"Key {key['name']} ({key['id']}). Its secret is shown only this once:", err=True)
    click.echo(reply["key"])


def _seconds(text: str) -> int:
    if text[-1:] not in _UNITS_S or not text[:-1].isdigit():
        raise click.UsageError(f"--grace: write {text!r} as a number followed by m, h or d.")
    return int(text[:-1]) * _UNITS_S[text[-1]]
