"""`tollgate build`: the functions for Lambda, from a checkout or from the installed package.

A gateway's repository has no code, so the build lays the package out as a checkout in
`.aws-sam/source`, with the permissions that routing.yaml needs in the template.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, Literal

import click
from msgspec import Struct

import tollgate
from tollgate.cli.routing.check import compile_valid
from tollgate.cli.routing.permissions import write_permissions
from tollgate.installation import PARTS, environment, part
from tollgate.routing.file.permissions import NotPermissible, compile_permissions
from tollgate.settings import environment_variable

ROUTING: Final = Path("routing.yaml")
_BUILT: Final = Path(".aws-sam")
# The build imports `infra`; other folders of the package are not part of a function.
_LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", "parts")


class BuildSource(Struct, frozen=True):
    """Folder with the code of the functions, laid out as a checkout."""

    folder: Path

    @property
    def template(self) -> Path:
        """Template whose functions are built."""
        return self.folder / PARTS["template"]


@click.command(epilog="Example: tollgate build --target host")
@click.option(
    "--target",
    default="lambda",
    show_default=True,
    type=click.Choice(["lambda", "host"]),
    help="Build for Lambda, or for this machine to try the functions.",
)
@click.option("--python", "python313", help="Command of a Python 3.13, which compiles bytecode.")
def build(target: Literal["lambda", "host"], python313: str | None) -> None:
    """Build the functions and their template into .aws-sam/build, or .aws-sam/host."""
    build_functions(Path.cwd(), target=target, python313=python313)
    if target == "lambda":
        click.echo(
            "Next: `tollgate deploy --no-build`, which also publishes; `sam deploy` does not"
        )


def build_functions(
    top: Path, *, target: Literal["lambda", "host"] = "lambda", python313: str | None = None
) -> None:
    """Build the functions of the repository in `top`; exit with SAM's status if SAM fails."""
    source = _source(top)
    python313 = python313 or environment_variable("PYTHON313") or ""
    run_tool(
        [sys.executable, "-m", "infra.artefact.interpreters", "--python", python313], source.folder
    )
    variables = {
        "BUILD_PYTHON": sys.executable,
        "BUILD_ROUTING": str((top / ROUTING).resolve()),
        "PYTHON313": python313,
        "SAM_CLI_TELEMETRY": "0",
        "TARGET": target,
    }
    run_tool(
        [
            "env",
            *(f"{name}={value}" for name, value in variables.items()),
            sam(),
            "build",
            "--build-in-source",
            *("--template-file", str(source.template)),
            *("--build-dir", str(top / _BUILT / ("build" if target == "lambda" else target))),
        ],
        top,
    )


def sam() -> str:
    """Return the path of the SAM CLI, which is installed from its lock if it is missing."""
    return environment_variable("SAM") or str(environment("sam") / "bin" / "sam")


def run_tool(command: list[str], folder: Path) -> None:
    """Run a command in a folder; exit with its status if it fails."""
    status = subprocess.run(command, cwd=folder, check=False).returncode  # noqa: S603 - a tool
    if status:
        raise SystemExit(status)


def _source(top: Path) -> BuildSource:
    """Return the source of a checkout, or lay out that of the package."""
    try:
        needed = compile_permissions(compile_valid(top / ROUTING).routing)
    except NotPermissible as invalid:
        raise click.ClickException(f"{ROUTING} must not be used.\n{invalid}") from invalid
    checkout = BuildSource(top)
    if checkout.template.is_file():
        text = checkout.template.read_text()
        if write_permissions(text, needed) != text:
            raise click.ClickException(
                f"{PARTS['template']} does not allow exactly what {ROUTING} names; "
                "`tollgate permissions` rewrites it, to be reviewed and committed"
            )
        return checkout
    source = BuildSource(top / _BUILT / "source")
    functions, artefact = source.folder / PARTS["handlers"], source.folder / PARTS["artefact"]
    for folder in (functions, artefact):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(part("artefact"), artefact, ignore=_LEFT_OUT)
    shutil.copytree(Path(tollgate.__path__[0]), functions / "tollgate", ignore=_LEFT_OUT)
    for file in part("handlers").iterdir():
        if file.is_file():
            shutil.copy(file, functions)
    source.template.write_text(write_permissions(part("template").read_text(), needed))
    return source
