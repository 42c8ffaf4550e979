"""`tollgate publish`, `canary`, `rollback` and `catalogs`: the catalogs of a deployed stack."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from shutil import which
from typing import Final, TypeVar

import click
from msgspec.structs import asdict

from tollgate.cli.options import region, routing_file, stack
from tollgate.cli.routing.permissions import list_missing
from tollgate.cli.stack.aws_account import AccountError, AwsAccount
from tollgate.cli.tables import show
from tollgate.core.clock import SystemClock
from tollgate.core.errors import GatewayError
from tollgate.core.publication import (
    Publication,
    Publications,
    Signature,
    publish_canary,
    publish_to_all,
)
from tollgate.routing.file.compile import CompiledCatalog, compile_catalog
from tollgate.routing.file.permissions import NotPermissible, compile_permissions
from tollgate.routing.file.problems import InvalidRouting
from tollgate.routing.schema import CompiledRouting, Routing
from tollgate.settings import Settings
from tollgate.web.shapes import moment
from tollgate.wiring.stores import wire_stores

# Characters of a sha that are printed.
_SHOWN: Final = 12
_ABBREVIATED_MIN: Final = 7
_FOLLOWED: Final = "Every instance follows within 30 seconds."
_COLUMNS: Final = ("revision", "at", "live", "canary", "commit", "by")
_Result = TypeVar("_Result")


@click.command()
@routing_file
@stack
@region
def publish(file: Path, stack: str, region: str | None) -> None:
    """Let a stack serve FILE without a deploy; a running canary ends."""
    catalog = _compile(file)

    async def move(store: Publications, account: AwsAccount) -> str:
        _check_allowed(account, stack, catalog.routing)
        before = await store.publication()
        if before is not None and (before.live, before.candidate) == (catalog.sha, None):
            return f"{_short(catalog.sha)} is live already."
        await store.keep(catalog.content)
        now = publish_to_all(before, catalog.sha, _signature(account, file.parent))
        await store.move(now)
        undo = f" `tollgate rollback` returns to {_short(now.previous)}." if now.previous else ""
        return f"{_short(catalog.sha)} is live.{_canary_ended(before)} {_FOLLOWED}{undo}"

    click.echo(_run_on(stack, region, move))


@click.command()
@click.argument("sha", required=False)
@stack
@region
def rollback(sha: str | None, stack: str, region: str | None) -> None:
    """Return to the catalog that was live before, or to SHA; a running canary ends."""

    async def move(store: Publications, account: AwsAccount) -> str:
        before = await _current(store)
        wanted = before.previous if sha is None else await _resolve(store, sha)
        if wanted is None:
            raise click.ClickException("Nothing was live before; `tollgate catalogs` lists them.")
        await _check_servable(store, account, stack, wanted)
        now = publish_to_all(before, wanted, _signature(account, None))
        await store.move(now)
        return f"{_short(wanted)} is live again.{_canary_ended(before)} {_FOLLOWED}"

    click.echo(_run_on(stack, region, move))


@click.command()
@click.argument("sha")
@click.option(
    "--percent", required=True, type=click.IntRange(0, 99), help="Share of keys; 0 ends it."
)
@click.option(
    "--file",
    default=Path("routing.yaml"),
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Uploaded if it is SHA and was never published.",
)
@stack
@region
def canary(sha: str, *, percent: int, file: Path, stack: str, region: str | None) -> None:
    """Serve a share of the keys by the catalog SHA.

    `tollgate check` prints the sha of a file.
    """

    async def move(store: Publications, account: AwsAccount) -> str:
        before = await _current(store)
        if not percent:
            return await _end(store, before, sha, _signature(account, None))
        wanted = await _resolve(store, sha, file)
        await _check_servable(store, account, stack, wanted)
        if wanted == before.live:
            raise click.ClickException(f"{_short(wanted)} is live for every key already.")
        await store.move(publish_canary(before, wanted, percent, _signature(account, file.parent)))
        return (
            f"{_short(wanted)} serves {percent} % of the keys, {_short(before.live)} the others. "
            f"{_FOLLOWED}"
        )

    click.echo(_run_on(stack, region, move))


@click.command()
@stack
@region
@click.option("--json", "style", flag_value="json", help="Print JSON.")
def catalogs(stack: str, region: str | None, style: str | None) -> None:
    """List published catalogs, latest first."""

    async def read_history(store: Publications, _: AwsAccount) -> Sequence[Publication]:
        return await store.history()

    history = _run_on(stack, region, read_history)
    whole = [asdict(publication) | {"at": _at(publication)} for publication in history]
    rows = [_row(publication) for publication in history]
    show(rows, _COLUMNS, "json" if style else "auto", data=whole)


def _compile(file: Path) -> CompiledCatalog:
    try:
        return compile_catalog(file, variables=Settings().variables)
    except InvalidRouting as invalid:
        raise click.ClickException(f"{file.as_posix()} must not be used.\n{invalid}") from invalid


def _compiled_if_present(file: Path) -> CompiledCatalog | None:
    return _compile(file) if file.is_file() else None


def _run_on(
    stack: str,
    region: str | None,
    work: Callable[[Publications, AwsAccount], Awaitable[_Result]],
) -> _Result:
    """Run `work` with the publications of a stack; its errors become ClickException."""
    try:
        account = AwsAccount(region)
        return asyncio.run(_with_store(account, stack, work))
    except (AccountError, GatewayError, NotPermissible) as error:
        raise click.ClickException(str(error)) from error


async def _with_store(
    account: AwsAccount,
    stack: str,
    work: Callable[[Publications, AwsAccount], Awaitable[_Result]],
) -> _Result:
    async with _stores(account, stack) as store:
        return await work(store, account)


@asynccontextmanager
async def _stores(account: AwsAccount, stack: str) -> AsyncIterator[Publications]:
    settings = account.settings(account.stack(stack))
    async with aclosing(wire_stores(settings, SystemClock())) as stores:
        yield stores.publications


async def _current(store: Publications) -> Publication:
    publication = await store.publication()
    if publication is None:
        raise click.ClickException("Nothing is published yet; `tollgate publish` does it.")
    return publication


async def _end(store: Publications, before: Publication, sha: str, signature: Signature) -> str:
    """End the canary of a sha, even if its catalog can no longer be read."""
    _check_length(sha)
    if before.candidate is None or not before.candidate.startswith(sha):
        raise click.ClickException(
            f"No canary of {sha} runs; `tollgate catalogs` shows which does."
        )
    await store.move(publish_canary(before, before.candidate, 0, signature))
    return f"The canary has ended; {_short(before.live)} serves every key. {_FOLLOWED}"


async def _resolve(store: Publications, sha: str, file: Path | None = None) -> str:
    """Return the whole sha of an abbreviated one, of a published catalog or of `file`.

    Raises ClickException unless exactly one catalog matches.
    """
    _check_length(sha)
    shas = {
        known
        for each in await store.history()
        for known in (each.live, each.candidate)
        if known is not None and known.startswith(sha)
    }
    at_hand = None if shas or file is None else _compiled_if_present(file)
    if at_hand is not None and at_hand.sha.startswith(sha):
        shas = {await store.keep(at_hand.content)}
    if len(shas) != 1:
        many = "more than one catalog" if shas else "no catalog"
        nor = f" {file.as_posix()} here is {_short_of(at_hand)}." if file and not shas else ""
        raise click.ClickException(f"{sha} names {many}; `tollgate catalogs` lists them.{nor}")
    return shas.pop()


def _short_of(at_hand: CompiledCatalog | None) -> str:
    return _short(at_hand.sha) if at_hand else "no file"


def _check_length(sha: str) -> None:
    if len(sha) < _ABBREVIATED_MIN:
        raise click.UsageError(f"{sha!r}: give {_ABBREVIATED_MIN} characters of the sha or more.")


async def _check_servable(store: Publications, account: AwsAccount, stack: str, sha: str) -> None:
    """Raise ClickException unless this version and this stack can serve a stored catalog."""
    content = await store.catalog(sha)
    try:
        routing = CompiledRouting.model_validate_json(content, strict=True)
    except ValueError as unreadable:
        raise click.ClickException(
            f"{_short(sha)} was compiled by another version of Tollgate; publish its file again."
        ) from unreadable
    _check_allowed(account, stack, routing)


def _check_allowed(account: AwsAccount, stack: str, routing: Routing) -> None:
    missing = list_missing(account.template(stack), compile_permissions(routing))
    if missing:
        listed = "\n".join(f"  {name}" for name in missing)
        raise click.ClickException(
            f"The stack {stack} does not know all that this catalog uses, or which secret goes to "
            f"which host:\n{listed}\n"
            "Deploy first: `tollgate permissions` and `make deploy` allow it, and publish."
        )


def _signature(account: AwsAccount, folder: Path | None) -> Signature:
    at_s = int(SystemClock().now_s())
    return Signature(by=account.caller(), at_s=at_s, commit=_commit(folder) if folder else None)


def _commit(folder: Path) -> str | None:
    """Return the commit that is checked out, with a `+` if files differ; None without git."""
    program = which("git")
    if program is None:
        return None
    described = subprocess.run(  # noqa: S603 - no shell, nothing of ours in the arguments
        [program, "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or None


def _canary_ended(before: Publication | None) -> str:
    candidate = before.candidate if before else None
    return f" The canary of {_short(candidate)} has ended." if candidate else ""


def _row(publication: Publication) -> dict[str, str]:
    candidate = publication.candidate
    return {
        "revision": str(publication.revision),
        "at": _at(publication),
        "live": _short(publication.live),
        "canary": f"{_short(candidate)} {publication.percent} %" if candidate else "",
        "commit": (publication.commit or "")[:_SHOWN],
        "by": publication.by,
    }


def _at(publication: Publication) -> str:
    return moment(publication.moved_s).isoformat().replace("+00:00", "Z")


def _short(sha: str) -> str:
    return sha[:_SHOWN]
