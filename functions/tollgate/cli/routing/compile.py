"""`tollgate compile`: write a routing file as the JSON that functions read."""

from pathlib import Path

import click

from tollgate.cli.options import routing_file
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.problems import InvalidRouting
from tollgate.settings import Settings


@click.command("compile")
@routing_file
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Where to write the compiled JSON.",
)
@click.option(
    "--production/--dev",
    default=True,
    show_default=True,
    help="Leave out what FILE includes for development, or keep it.",
)
def compile_file(file: Path, output: Path, production: bool) -> None:
    """Check FILE and write its compiled form; write nothing if there are errors."""
    try:
        compiled = compile_catalog(file, dev=not production, variables=Settings().variables)
    except InvalidRouting as invalid:
        raise click.ClickException(f"{file.as_posix()} must not be used.\n{invalid}") from invalid
    # The file is renamed when complete, so that no reader sees half a catalog.
    written = output.with_name(f"{output.name}.part")
    try:
        written.write_bytes(compiled.content)
        written.replace(output)
    except OSError as unwritable:
        raise click.ClickException(f"{output.as_posix()}: {unwritable.strerror}") from unwritable
    click.echo(f"{output.as_posix()}: catalog {compiled.sha}, {len(compiled.content)} bytes")
