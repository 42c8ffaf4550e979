"""Arguments, options and values that several commands share."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
from typing_extensions import override

from tollgate.cli.stack.stages import find_region
from tollgate.core.clock import SystemClock

# Exit statuses of plans, like those of terraform -detailed-exitcode.
EXIT_SAME: Final = 0
EXIT_ERROR: Final = 1
EXIT_CHANGES: Final = 2


class _Misused(click.UsageError):
    exit_code = EXIT_ERROR


class PlanCommand(click.Command):
    """A command that exits with status 1 on wrong usage, because click's usual status 2 means
    "changes" here.
    """

    @override
    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as wrong:
            raise _Misused(wrong.format_message(), wrong.ctx) from wrong


ROUTING_FILE: Final = Path("routing.yaml")

routing_file = click.argument(
    "file",
    default=ROUTING_FILE,
    type=click.Path(path_type=Path, dir_okay=False),
)


def routing_option(
    name: str, description: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return an option that names a routing file; `routing.yaml` by default."""
    return click.option(
        name,
        default=ROUTING_FILE,
        show_default=True,
        type=click.Path(path_type=Path, dir_okay=False),
        help=description,
    )


_STACK: Final = "tollgate"
stack = click.option("--stack", default=_STACK, show_default=True, help="The CloudFormation stack.")


def _deployed_region(context: click.Context, _option: click.Parameter, text: str) -> str | None:
    """Return the stated region, or the one that `tollgate deploy` wrote for the stack."""
    file = Path("samconfig.toml")
    if text or not file.is_file():
        return text
    try:
        # click reads the options that are not stated last, so a command's stack is known.
        stack_name = context.params.get("stack", _STACK)
        return find_region(file.read_text(encoding="utf-8"), stack_name)
    except ValueError as unreadable:
        raise click.ClickException(f"{file} cannot be read: {unreadable}") from unreadable


# boto3 reads only AWS_DEFAULT_REGION, but the AWS command line also reads AWS_REGION.
region = click.option(
    "--region",
    envvar="AWS_REGION",
    show_envvar=True,
    callback=_deployed_region,
    help="Region of the stack; by default that of its stage in samconfig.toml, or of the AWS "
    "profile.",
)

workspace_id_option = click.option(
    "--workspace",
    "workspace_id",
    metavar="ID",
    help="Workspace, for the operator; by default, the workspace of the key.",
)

month_option = click.option(
    "--month",
    metavar="YYYY-MM",
    callback=lambda _context, _option, text: text and resolve_month(text, utc_today()),
    help="The UTC month, or `last` for the previous one; the current month by default.",
)

_AGO: Final = re.compile(r"([1-9][0-9]{0,3})([dh])", re.ASCII)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_SECONDS: Final = {"d": 86_400, "h": 3_600}


def utc_today() -> date:
    """Return the current UTC day."""
    return datetime.fromtimestamp(SystemClock().now_s(), UTC).date()


def resolve_month(text: str, today: date) -> str:
    """Return the month before `today` for `last`, such as 2026-10, and other text as it is."""
    return f"{today.replace(day=1) - timedelta(days=1):%Y-%m}" if text == "last" else text


def as_moment(text: str) -> str:
    """Return the start of a UTC day in the API's format; return other text for the API to check."""
    return f"{text}T00:00:00Z" if _DAY.fullmatch(text) else text


def since_moment(text: str) -> str:
    """Return the time `7d` or `12h` ago, or what `as_moment` returns for other text."""
    ago = _AGO.fullmatch(text)
    if ago is None:
        return as_moment(text)
    then_s = int(SystemClock().now_s()) - int(ago[1]) * _SECONDS[ago[2]]
    return datetime.fromtimestamp(then_s, UTC).isoformat()


def with_moments(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query with `since` and `until`, unless None, in the API's format."""
    moments = {name: text for name in ("since", "until") if (text := query[name]) is not None}
    return {**query, **{name: since_moment(text) for name, text in moments.items()}}


def without_none(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with a value."""
    return {name: value for name, value in options.items() if value is not None}
