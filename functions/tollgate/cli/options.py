"""What several commands ask for in the same way."""

from pathlib import Path

import click

routing_file = click.argument(
    "file",
    default=Path("routing.yaml"),
    type=click.Path(path_type=Path, dir_okay=False),
)

stack = click.option(
    "--stack", default="tollgate", show_default=True, help="The CloudFormation stack."
)
region = click.option("--region", help="Its region; the one of your AWS profile otherwise.")
