"""`tollgate batches`: files of requests that run later."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.options import region, stack
from tollgate.cli.tables import OutputStyle, show, show_one
from tollgate.core.dotted_names import DottedName

_BATCH_SHAPE: Final = DottedName[type[Any]]("tollgate.web.batches.batch_shapes:BatchObject")
# Imported on use, because boto3 is slow to import.
_DEAD_LETTERS: Final = DottedName[Callable[..., None]](
    "tollgate.cli.stack.dead_letters:show_dead_letters"
)
_COLUMNS: Final = ("id", "status", "endpoint", "total", "completed", "failed", "total_cost")
_ENDED: Final = frozenset({"failed", "completed", "expired", "cancelled"})
_PAGE: Final = 100
_WATCH_S: Final = 2.0


@click.group()
def batches() -> None:
    """Create, list, watch and cancel batches; needs a key with the right to generate."""


@batches.command("create", epilog="Example: tollgate batches create requests.jsonl --watch")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--endpoint", metavar="PATH", help="API path; by default that of the first line.")
@click.option("--watch", is_flag=True, help="Wait until the batch has ended.")
@calls_gateway
def create_from_file(
    api: Api, style: OutputStyle, *, file: Path, endpoint: str | None, watch: bool
) -> None:
    """Upload FILE, which has one JSON request per line, and create a batch from it."""
    announced = {"filename": file.name, "purpose": "batch", "bytes": file.stat().st_size}
    upload = api.post("/files/presigned", {**announced, "media_type": "application/jsonl"})
    api.upload(upload["url"], file, upload["headers"])
    body = {
        "input_file_id": upload["id"],
        "endpoint": endpoint or _endpoint_of(file),
        "completion_window": "24h",
    }
    batch = api.post("/batches", body)
    _finish(api, batch, style, watch=watch)


@batches.command("ls", epilog="Example: tollgate batches ls --json")
@calls_gateway
def list_batches(api: Api, style: OutputStyle) -> None:
    """List the batches, newest first."""
    found = list[Any]()
    after: str | None = None
    while True:
        page = api.get("/batches", {"limit": _PAGE, "after": after})
        found += page["data"]
        if not page["has_more"]:
            break
        after = page["last_id"]
    show([_row(each) for each in found], _COLUMNS, style, data=found, shape=_BATCH_SHAPE)


@batches.command("show", epilog="Example: tollgate batches show batch_5g8Z9S3BZqHxGdQ --watch")
@click.argument("batch_id", metavar="ID")
@click.option("--watch", is_flag=True, help="Wait until the batch has ended.")
@calls_gateway
def show_batch(api: Api, style: OutputStyle, *, batch_id: str, watch: bool) -> None:
    """Show a batch with its counts and its cost so far; exit with 1 if it failed."""
    _finish(api, api.get(f"/batches/{batch_id}"), style, watch=watch)


@batches.command(
    "results", epilog="Example: tollgate batches results batch_5g8Z9S3BZqHxGdQ > results.jsonl"
)
@click.argument("batch_id", metavar="ID")
@click.option("--errors", is_flag=True, help="Print the lines that failed or did not run.")
@calls_gateway
def print_results(api: Api, style: OutputStyle, *, batch_id: str, errors: bool) -> None:
    """Print the lines of the output file, or of the error file."""
    batch = api.get(f"/batches/{batch_id}")
    file_id = batch["error_file_id" if errors else "output_file_id"]
    if file_id is None:
        raise click.ClickException(f"The batch is {batch['status']} and has no such file.")
    for piece in api.download(f"/files/{file_id}/content"):
        click.echo(piece, nl=False)


@batches.command("cancel", epilog="Example: tollgate batches cancel batch_5g8Z9S3BZqHxGdQ")
@click.argument("batch_id", metavar="ID")
@calls_gateway
def cancel_batch(api: Api, style: OutputStyle, batch_id: str) -> None:
    """Cancel a batch: no further line begins."""
    _finish(api, api.post(f"/batches/{batch_id}/cancel", {}), style, watch=False)


@batches.command(
    "dead-letters", epilog="Example: tollgate batches dead-letters --stack tollgate --send-again"
)
@stack
@region
@click.option("--send-again", is_flag=True, help="Return the messages to their queues.")
@click.option("--json", "style", flag_value="json", help="Print JSON.")
@click.option("--auto", "style", flag_value="auto", default="auto", hidden=True)
def list_dead_letters(
    stack: str, region: str | None, *, send_again: bool, style: OutputStyle
) -> None:
    """List the messages that a stack's workers failed three times to process.

    The command uses your AWS credentials. A server has no such messages: it finds open jobs itself.
    """
    _DEAD_LETTERS()(stack, region, send_again=send_again, style=style)


def _finish(api: Api, batch: Any, style: OutputStyle, *, watch: bool) -> None:
    """Show a batch, after its end if it is watched, and exit with 1 if it failed."""
    if watch:
        batch = _watched(api, batch)
    show_one(_row(batch), _COLUMNS, style, data=batch, shape=_BATCH_SHAPE)
    for fault in (batch["errors"] or {"data": ()})["data"]:
        place = "" if fault["line"] is None else f"line {fault['line']}: "
        click.echo(f"{place}{fault['message']} ({fault['code']})", err=True)
    if batch["status"] == "failed":
        raise SystemExit(1)


def _watched(api: Api, batch: Any) -> Any:
    """Return a batch after its end; show the progress on a terminal."""
    while batch["status"] not in _ENDED:
        api.pause(_WATCH_S)
        batch = api.get(f"/batches/{batch['id']}")
        if sys.stderr.isatty():
            counts = batch["request_counts"]
            ended = counts["completed"] + counts["failed"]
            shown = f"{batch['status']}: {ended:,} of {counts['total']:,}, ${batch['total_cost']}"
            click.echo(f"\r\x1b[K{shown}", nl=False, err=True)
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    return batch


def _endpoint_of(file: Path) -> str:
    """Return the path that the first line of a file names; raise ClickException if it has none."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        first = next((line for line in lines if line.strip()), "")
    try:
        return str(json.loads(first)["url"]).removeprefix("/api")
    except (ValueError, KeyError, TypeError) as faulty:
        raise click.ClickException(
            f"The first line of {file} names no `url`; every line needs custom_id, method, url and"
            " body as JSON."
        ) from faulty


def _row(batch: Any) -> dict[str, Any]:
    return {**batch, **batch["request_counts"]}
