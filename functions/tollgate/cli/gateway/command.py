"""Options that every command for a running gateway accepts."""

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec

import click

from tollgate.cli.gateway.http import Api, gateway
from tollgate.core.dotted_names import DottedName

# Imported only for callers without a key.
_SESSION_TOKEN: Final = DottedName[Callable[[str], str | None]](
    "tollgate.cli.gateway.login:session_token"
)

_Params = ParamSpec("_Params")


def calls_gateway(command: Callable[_Params, None]) -> Callable[..., None]:
    """Call a command with its gateway as `api` and its output style as `style`."""

    @click.option(
        "--url",
        envvar="TOLLGATE_URL",
        default="http://localhost:8787/api/v1",
        show_default=True,
        show_envvar=True,
        help="Base URL of the gateway.",
    )
    @click.option("--json", "style", flag_value="json", help="Print JSON.")
    @click.option("--csv", "style", flag_value="csv", help="Print CSV.")
    @click.option("--auto", "style", flag_value="auto", default="auto", hidden=True)
    # Hidden so that keys are set in the environment, because shells store command lines in their
    # history.
    @click.option("--secret", envvar="TOLLGATE_KEY", hidden=True)
    @wraps(command)
    def call_with_gateway(*args: _Params.args, **kwargs: _Params.kwargs) -> None:
        url, secret = str(kwargs.pop("url")), kwargs.pop("secret")
        kwargs["api"] = open_gateway(url, str(secret) if secret else None)
        command(*args, **kwargs)

    return call_with_gateway


def open_gateway(url: str, secret: str | None) -> Api:
    """Return a client that uses the key if there is one, and the user's session otherwise."""
    return gateway(url, secret or _SESSION_TOKEN()(url))
