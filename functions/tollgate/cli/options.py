"""Arguments and options that several commands share."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

routing_file = click.argument(
    "file",
    default=Path("routing.yaml"),
    type=click.Path(path_type=Path, dir_okay=False),
)

stack = click.option(
    "--stack", default="tollgate", show_default=True, help="The CloudFormation stack."
)
# boto3 reads only AWS_DEFAULT_REGION; the AWS command line reads AWS_REGION too.
region = click.option(
    "--region",
    envvar="AWS_REGION",
    show_envvar=True,
    help="Region of the stack; by default the region of the AWS profile.",
)

_AGO: Final = re.compile(r"([1-9][0-9]{0,3})([dh])", re.ASCII)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_SECONDS: Final = {"d": 86_400, "h": 3_600}


def as_moment(text: str) -> str:
    """Return the start of a UTC day in the API's format; return other text unchanged."""
    return f"{text}T00:00:00Z" if _DAY.fullmatch(text) else text


def since_moment(text: str, now_s: float) -> str:
    """Return the moment `7d` or `12h` ago, or the start of a day, in the API's format.

    Other text is returned unchanged, for the API to validate.
    """
    ago = _AGO.fullmatch(text)
    if ago is None:
        return as_moment(text)
    then_s = int(now_s) - int(ago[1]) * _SECONDS[ago[2]]
    return datetime.fromtimestamp(then_s, UTC).isoformat()


def with_moments(query: Mapping[str, Any], now_s: float) -> dict[str, Any]:
    """Return a query with `since` and `until`, if given, as moments in the API's format."""
    moments = {name: text for name in ("since", "until") if (text := query[name]) is not None}
    return {**query, **{name: since_moment(text, now_s) for name, text in moments.items()}}
