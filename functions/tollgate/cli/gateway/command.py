"""Options that every command for a running gateway accepts."""

from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec

import click

from tollgate.cli.gateway.http import Api, gateway, gateway_url
from tollgate.core.dotted_names import DottedName

_Params = ParamSpec("_Params")
# Imported only if no key is set.
_SESSION_TOKEN: Final = DottedName[Callable[[str], str | None]](
    "tollgate.cli.gateway.login:session_token"
)


def calls_gateway(command: Callable[_Params, None]) -> Callable[..., None]:
    """Give a command options for the gateway and the output, passed as `api` and `style`."""

    @gateway_url
    @click.option("--json", "style", flag_value="json", help="Print JSON.")
    @click.option("--csv", "style", flag_value="csv", help="Print CSV.")
    @click.option("--auto", "style", flag_value="auto", default="auto", hidden=True)
    # Hidden, because a shell's history would store a key on the command line.
    @click.option("--secret", envvar="TOLLGATE_KEY", hidden=True)
    @wraps(command)
    def call_with_gateway(*args: _Params.args, **kwargs: _Params.kwargs) -> None:
        url, secret = str(kwargs.pop("url")), kwargs.pop("secret")
        kwargs["api"] = open_gateway(url, str(secret) if secret else None)
        command(*args, **kwargs)

    return call_with_gateway


def open_gateway(url: str, secret: str | None) -> Api:
    """Return a client with the given key, or else with the user's session."""
    return gateway(url, secret or _SESSION_TOKEN()(url))
