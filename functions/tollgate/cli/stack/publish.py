"""`tollgate publish`, `canary` and `rollback`: change the catalog that a stack serves."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

import click

from tollgate.cli.options import region, routing_file, routing_option, stack
from tollgate.cli.routing.check import compile_valid
from tollgate.cli.routing.permissions import list_missing
from tollgate.cli.routing.revisions import find_commit
from tollgate.cli.stack.aws_account import AwsAccount
from tollgate.cli.stack.catalogs import check_length, run_on_stack, short_sha
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.core.routing.canary import Figure, Terms
from tollgate.core.routing.publication import (
    Publication,
    Publications,
    Signature,
    publish_canary,
    publish_to_all,
)
from tollgate.routing.file.compile import CompiledCatalog
from tollgate.routing.file.permissions import compile_permissions
from tollgate.routing.routing_file import Routing
from tollgate.stores.rules.audit_entries import AuditedChange, new_entry

_DIRTY: Final = (
    "Warning: files of this checkout are not committed, so the commit alone does not tell what is "
    "served; `tollgate catalogs` shows it with a +."
)
_FALSE_ALARMS: Final = 5.0
_PERCENT: Final = re.compile(r"\d{1,3}(\.\d{1,3})?%?")
_FOLLOWED: Final = "Every instance follows within 30 seconds."


@click.command(epilog="Example: tollgate publish routing.yaml --stack tollgate")
@routing_file
@stack
@region
def publish(file: Path, stack: str, region: str | None) -> None:
    """Make a stack serve FILE without a deploy; this ends a running canary."""
    catalog = compile_valid(file)

    async def move(store: Publications, account: AwsAccount) -> str:
        _check_allowed(account, stack, catalog.routing)
        before = await store.publication()
        if before is not None and (before.live, before.candidate) == (catalog.sha, None):
            return f"{short_sha(catalog.sha)} is live already."
        await store.keep(catalog.content)
        now = publish_to_all(before, catalog.sha, _signature(account, file.parent))
        await _move(store, "catalog.publish", before, now)
        if (now.commit or "").endswith("+"):
            click.echo(_DIRTY, err=True)
        undo = f" `tollgate rollback` returns to {short_sha(now.previous)}." if now.previous else ""
        return f"{short_sha(catalog.sha)} is live.{_canary_ended(before)} {_FOLLOWED}{undo}"

    click.echo(run_on_stack(stack, region, move))


@click.command(epilog="Example: tollgate rollback dfe44ae77850")
@click.argument("sha", required=False)
@stack
@region
def rollback(sha: str | None, stack: str, region: str | None) -> None:
    """Return to the previous catalog or to SHA; this ends a running canary."""

    async def move(store: Publications, account: AwsAccount) -> str:
        before = await _current(store)
        target = before.previous if sha is None else await _resolve(store, sha)
        if target is None:
            raise click.ClickException(
                "There is no previous catalog; `tollgate catalogs` lists all catalogs."
            )
        if (before.live, before.candidate) == (target, None):
            return f"{short_sha(target)} is live already."
        await _check_servable(store, account, stack, target)
        now = publish_to_all(before, target, _signature(account, None))
        await _move(store, "catalog.rollback", before, now)
        return f"{short_sha(target)} is live again.{_canary_ended(before)} {_FOLLOWED}"

    click.echo(run_on_stack(stack, region, move))


@click.command(epilog="Example: tollgate canary dfe44ae77850 --percent 5 --keep errors=1")
@click.argument("sha")
@click.option(
    "--percent",
    required=True,
    type=click.IntRange(0, 99),
    help="Percentage of the keys; 0 ends the canary.",
)
@click.option(
    "--keep",
    "kept",
    multiple=True,
    metavar="FIGURE=PERCENT",
    help=f"Withdraw the catalog if FIGURE ({', '.join(get_args(Figure))}) gets worse by more.",
)
@click.option(
    "--false-alarms",
    metavar="PERCENT",
    help=f"Highest chance that a catalog which keeps its terms is withdrawn; by default"
    f" {_FALSE_ALARMS:g}.",
)
@routing_option("--file", "Uploaded if its catalog is SHA and was never published.")
@stack
@region
def canary(
    sha: str,
    *,
    percent: int,
    kept: tuple[str, ...],
    false_alarms: str | None,
    file: Path,
    stack: str,
    region: str | None,
) -> None:
    """Serve the catalog SHA to a share of the keys; `tollgate check` prints a file's SHA.

    With --keep, the sweeper compares SHA with the live catalog, and withdraws SHA if it breaks a
    term. A new share for the same SHA keeps the terms, unless new terms are given.
    """
    given = _read_terms(kept, false_alarms)
    if given is not None and not percent:
        raise click.UsageError("--keep needs a catalog that serves keys: --percent from 1 to 99.")

    async def move(store: Publications, account: AwsAccount) -> str:
        before = await _current(store)
        if not percent:
            return await _end(store, before, sha, _signature(account, None))
        target = await _resolve(store, sha, file)
        await _check_servable(store, account, stack, target)
        if target == before.live:
            raise click.ClickException(f"{short_sha(target)} is live for every key already.")
        terms = given or (before.terms if target == before.candidate else None)
        now = publish_canary(before, target, percent, _signature(account, file.parent), terms=terms)
        await _move(store, "catalog.canary", before, now)
        watched = "" if terms is None else f" Its terms: {terms.describe()}."
        return (
            f"{short_sha(target)} serves {percent} % of the keys, {short_sha(before.live)} the"
            f" others. {_FOLLOWED}{watched}"
        )

    click.echo(run_on_stack(stack, region, move))


def _read_terms(kept: Sequence[str], false_alarms: str | None) -> Terms | None:
    """Return the terms of the options; raise UsageError for text that is not a term."""
    worse_percent: dict[Figure, float] = {}
    for text in kept:
        name, _, percent = text.partition("=")
        figure = next((known for known in get_args(Figure) if known == name), None)
        if figure is None:
            raise click.UsageError(
                f"--keep {text!r}: give one of {', '.join(get_args(Figure))}, as in errors=1."
            )
        if figure in worse_percent:
            raise click.UsageError(f"--keep names {name} twice.")
        worse_percent[figure] = _read_percent(f"--keep {text!r}", percent, 0, 100)
    if worse_percent:
        rate = _FALSE_ALARMS
        if false_alarms is not None:
            rate = _read_percent(f"--false-alarms {false_alarms!r}", false_alarms, 0.1, 50)
        return Terms(worse_percent=worse_percent, false_alarms_percent=rate)
    if false_alarms is not None:
        raise click.UsageError("--false-alarms needs terms: give --keep as well.")
    return None


def _read_percent(option: str, text: str, least: float, most: float) -> float:
    percent = float(text.removesuffix("%")) if _PERCENT.fullmatch(text) else -1.0
    if not least <= percent <= most:
        raise click.UsageError(f"{option}: give a percentage from {least:g} to {most:g}.")
    return percent


async def _current(store: Publications) -> Publication:
    publication = await store.publication()
    if publication is None:
        raise click.ClickException("Nothing is published yet; run `tollgate publish` first.")
    return publication


async def _move(
    store: Publications, action: str, before: Publication | None, now: Publication
) -> None:
    """Store a publication as the current one, with an entry in the audit log."""
    clock = SystemClock()
    change = AuditedChange(
        action=action,
        target=now.candidate or now.live,
        workspace_id=None,
        before=before,
        after=now,
    )
    entry = new_entry(change, Actor(kind="aws", id=now.by), ids=IdSource(clock), clock=clock)
    await store.move(now, entry)


async def _end(store: Publications, before: Publication, sha: str, signature: Signature) -> str:
    """End the canary of a SHA, even if its catalog can no longer be read."""
    check_length(sha)
    if before.candidate is None or not before.candidate.startswith(sha):
        raise click.ClickException(
            f"SHA {sha} has no running canary; `tollgate catalogs` shows which catalog does."
        )
    now = publish_canary(before, before.candidate, 0, signature)
    await _move(store, "catalog.canary", before, now)
    return f"The canary has ended; {short_sha(before.live)} serves every key. {_FOLLOWED}"


async def _resolve(store: Publications, sha: str, file: Path | None = None) -> str:
    """Return the full SHA of a published catalog or of `file`; raise ClickException unless exactly
    one matches.
    """
    check_length(sha)
    shas = {
        known
        for each in await store.history()
        for known in (each.live, each.candidate)
        if known is not None and known.startswith(sha)
    }
    at_hand = None if shas else _compile_if_present(file)
    if at_hand is not None and at_hand.sha.startswith(sha):
        shas = {await store.keep(at_hand.content)}
    if len(shas) != 1:
        many = "more than one catalog" if shas else "no catalog"
        file_sha = short_sha(at_hand.sha) if at_hand else "no file"
        nor = f" {file.as_posix()} here is {file_sha}." if file and not shas else ""
        raise click.ClickException(f"{sha} names {many}; `tollgate catalogs` lists them.{nor}")
    return shas.pop()


def _compile_if_present(file: Path | None) -> CompiledCatalog | None:
    return compile_valid(file) if file and file.is_file() else None


async def _check_servable(store: Publications, account: AwsAccount, stack: str, sha: str) -> None:
    """Raise ClickException unless the stack can serve a stored catalog."""
    content = await store.catalog(sha)
    try:
        routing = Routing.model_validate_json(content, strict=True)
    except ValueError as unreadable:
        raise click.ClickException(
            f"{short_sha(sha)} was compiled by another version of Tollgate; publish its file again."
        ) from unreadable
    _check_allowed(account, stack, routing)


def _check_allowed(account: AwsAccount, stack: str, routing: Routing) -> None:
    missing = list_missing(account.template(stack), compile_permissions(routing))
    if missing:
        listed = "\n".join(f"  {name}" for name in missing)
        raise click.ClickException(
            f"The stack {stack} lacks permissions or pairs of secrets and hosts that this catalog "
            f"needs:\n{listed}\nDeploy first: run `tollgate permissions` and `make deploy`, then "
            "publish."
        )


def _signature(account: AwsAccount, folder: Path | None) -> Signature:
    at_s = int(SystemClock().now_s())
    return Signature(by=account.caller(), at_s=at_s, commit=find_commit(folder) if folder else None)


def _canary_ended(before: Publication | None) -> str:
    candidate = before.candidate if before else None
    return f" The canary of {short_sha(candidate)} has ended." if candidate else ""
