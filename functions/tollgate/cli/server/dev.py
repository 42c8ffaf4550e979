"""`tollgate dev`: the local store first, then the gateway, which takes longer to import."""

import logging
from pathlib import Path
from typing import Final, Protocol

import click

from tollgate.cli.options import ROUTING_FILE, routing_option
from tollgate.cli.server.ministack import Ministack, lock_folder, ministack
from tollgate.core.dotted_names import DottedName
from tollgate.installation import part


class _Serve(Protocol):
    def __call__(
        self, store: Ministack, *, routing: Path, port: int, ready_file: Path | None
    ) -> None: ...


# Imported while the store starts in its own process: each takes about a second.
_SERVE: Final = DottedName[_Serve]("tollgate.cli.server.local_gateway:serve_locally")


@click.command(epilog="Example: tollgate dev --port 8080")
@click.option(
    "--port",
    default=8787,
    show_default=True,
    type=click.IntRange(0, 65_535),
    help="Port on localhost; 0 picks one.",
)
@routing_option("--routing", "The routing file to serve.")
@click.option(
    "--state",
    default=Path(".dev"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the local database and keys.",
)
@click.option(
    "--ready-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write {base_url, key, management_key, pid} to as JSON once the server answers.",
)
def dev(port: int, routing: Path, state: Path, ready_file: Path | None) -> None:
    """Serve the gateway on this machine."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if routing == ROUTING_FILE and not routing.exists():
        routing = part("routing")
        click.echo(
            f"No {ROUTING_FILE} is in this folder; the one in this version of Tollgate is used."
        )
    with lock_folder(state), ministack(state) as store:
        _SERVE()(store, routing=routing, port=port, ready_file=ready_file)
    click.echo("Stopped.")
