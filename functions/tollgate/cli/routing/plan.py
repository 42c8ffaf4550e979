"""`tollgate plan`: the effects of a change in routing.yaml on costs and traffic."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import click
import msgspec
from click.core import ParameterSource

from tollgate.cli.gateway.command import open_gateway
from tollgate.cli.gateway.http import Query
from tollgate.cli.options import (
    EXIT_CHANGES,
    EXIT_ERROR,
    EXIT_SAME,
    PlanCommand,
    routing_option,
    since_moment,
    utc_today,
)
from tollgate.cli.routing.plan_json import as_data
from tollgate.cli.routing.plan_markdown import as_markdown
from tollgate.cli.routing.plan_text import as_text
from tollgate.cli.routing.revisions import Revision, find_merge_base, read_commit, read_file
from tollgate.routing.file.permissions import NotPermissible
from tollgate.routing.review.diff import find_differing_days
from tollgate.routing.review.replay import replay_traffic
from tollgate.routing.review.review import (
    Review,
    find_differences,
    find_secret_moves,
    find_undeployed,
)
from tollgate.routing.review.traffic import BadTraffic, RecordedRequest, read_traffic
from tollgate.routing.routing_file import Routing

PlanStyle = Literal["text", "markdown", "json"]
_PAGE: Final = 500
_RANGE: Final = re.compile(r"(?P<base>.*?)(?P<dots>\.\.\.?)(?P<head>.*)")
_RENDERED: Final[Mapping[str, Callable[[Review], str]]] = {
    "text": as_text,
    "markdown": as_markdown,
    "json": as_data,
}


@click.command(cls=PlanCommand, epilog="Example: tollgate plan main..HEAD --markdown")
@click.argument("revisions", nargs=-1, metavar="[BASE..HEAD | BASE [HEAD]]")
@routing_option("--file", "Routing file at both revisions.")
@click.option(
    "--traffic",
    type=click.File("rb"),
    help="Traffic from `tollgate generations export`; - reads standard input.",
)
@click.option(
    "--url",
    envvar="TOLLGATE_URL",
    show_envvar=True,
    help="Base URL of the gateway whose traffic is replayed.",
)
@click.option("--secret", envvar="TOLLGATE_KEY", hidden=True)
@click.option(
    "--since",
    default="7d",
    show_default=True,
    help="Maximum age of the traffic from a gateway: 7d, 12h.",
)
@click.option("--markdown", "style", flag_value="markdown", help="Print a comment for GitHub.")
@click.option("--json", "style", flag_value="json", help="Print JSON.")
@click.option("--text", "style", flag_value="text", default="text", hidden=True)
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    *,
    revisions: tuple[str, ...],
    file: Path,
    traffic: BinaryIO | None,
    style: PlanStyle,
    **source: str | None,
) -> None:
    """Review a change in the routing file, and replay recorded traffic with both versions.

    A revision is a git revision or a file. HEAD defaults to the working tree, and BASE to the last
    commit. BASE...HEAD compares HEAD with the last common commit.

    The exit status is 0 if no request is affected, 2 if any is, and 1 if there is no plan or HEAD
    must not be used.
    """
    today = utc_today()
    base, head = _revisions(revisions, file, today)
    named = ctx.get_parameter_source("url") is ParameterSource.COMMANDLINE
    requests = recorded_traffic(traffic, source, named=named)
    try:
        review = review_revisions(base, head, requests, today)
    except BadTraffic as bad:
        raise click.ClickException(f"The recorded traffic cannot be read: {bad}.") from bad
    except NotPermissible as refused:
        raise click.ClickException(f"{head.name} must not be used: {refused}.") from refused
    click.echo(_RENDERED[style](review))
    ctx.exit(exit_status(review))


def exit_status(review: Review) -> int:
    """Return 0 for no changes, 1 for an error, 2 for changes, like terraform -detailed-exitcode."""
    if review.errors:
        return EXIT_ERROR
    return EXIT_SAME if review.label is None else EXIT_CHANGES


def review_revisions(
    base: Revision, head: Revision, requests: Iterator[RecordedRequest] | None, today: date
) -> Review:
    """Return the review of a change, with replayed traffic unless `requests` is None."""
    if head.routing is None:
        return Review(base=base.name, head=head.name, errors=head.errors)
    empty = None
    if not base.exists:
        empty = "is not there"
    elif base.routing is None:
        empty = "does not pass the check"
    before = base.routing or Routing(version=1)
    changes, promises = find_differences(before, head.routing, today)
    days = find_differing_days(before, head.routing, today)
    return Review(
        base=base.name,
        head=head.name,
        base_is_empty=empty,
        changes=changes,
        promises=promises,
        secret_moves=find_secret_moves(before, head.routing),
        deploy_first=find_undeployed(before, head.routing),
        replay=None
        if requests is None
        else replay_traffic(requests, base.catalog, head.catalog, days),
    )


def _revisions(names: Sequence[str], file: Path, today: date) -> tuple[Revision, Revision]:
    """Return the base and the head that the command line names."""
    if len(names) > 2:
        raise click.ClickException("Name two revisions at most: BASE HEAD.")
    if len(names) == 2:
        return _revision(names[0], file, today), _revision(names[1], file, today)
    base = names[0] if names else "HEAD"
    between = _RANGE.fullmatch(base)
    if between is None or Path(base).is_file():
        return _revision(base, file, today), read_file(file, "working tree", today)
    base, head = between["base"] or "HEAD", between["head"] or "HEAD"
    if between["dots"] == "...":
        base = find_merge_base(base, head)
    return read_commit(base, file, today), read_commit(head, file, today)


def _revision(name: str, file: Path, today: date) -> Revision:
    path = Path(name)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return read_file(path, name, today)
    return read_commit(name, file, today)


def recorded_traffic(
    file: BinaryIO | None, source: Mapping[str, str | None], *, named: bool
) -> Iterator[RecordedRequest] | None:
    """Return an iterator over the traffic to replay; None if no source is named.

    Workflows in forks have no key; without a key, a gateway URL in the environment is ignored.
    """
    url, secret, since = source["url"], source["secret"], source["since"]
    if file is not None:
        return read_traffic(file)
    if url is None or not (secret or named):
        return None
    query: Query = {"since": since_moment(since or ""), "limit": _PAGE}
    return _recorded(open_gateway(url, secret).pages("/generations", query, "cursor"))


def _recorded(generations: Iterator[Any]) -> Iterator[RecordedRequest]:
    for generation in generations:
        try:
            request = msgspec.convert(generation, RecordedRequest)
        except msgspec.ValidationError as invalid:
            raise BadTraffic("the gateway and this command have different versions") from invalid
        if not request.bill_only:
            yield request
