"""`tollgate init`: creates a gateway's repository, which has configuration but no code."""

import re
import shutil
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from tollgate import DISTRIBUTION
from tollgate.cli.catalog.release import CatalogRelease, installed_release
from tollgate.cli.repository.fork import CannotConvert, convert_fork
from tollgate.cli.routing.check import compile_valid
from tollgate.cli.upgrades.requirements import render_requirements
from tollgate.cli.upgrades.wheels import NoRelease, fetch_release
from tollgate.installation import part
from tollgate.routing.file.catalog_parts import CATALOG_FILE

# Each file of a repository, and its text in the package.
_FILES: Final = {
    "routing.yaml": "routing.yaml",
    "samconfig.toml": "samconfig.toml",
    "README.md": "README.md",
    ".gitignore": "gitignore",
    ".github/workflows/check.yml": "check.yml",
    ".github/workflows/routing.yml": "routing.yml",
    ".github/workflows/nightly.yml": "nightly.yml",
}
_PLACEHOLDER: Final = "OWNER/tollgate"
_SOURCE: Final = re.compile(r"[A-Za-z0-9-]+/[\w.-]+", re.ASCII)
_NEXT: Final = """\
{folder} has {count} files, and its routing.yaml is valid. Next:
  cd {folder} && git init
  python3 -m venv .venv && .venv/bin/pip install --require-hashes -r requirements.txt
  .venv/bin/tollgate dev
"""


@click.command(epilog="Example: tollgate init my-gateway --source OWNER/tollgate")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--from-fork",
    "fork",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Checkout of a fork whose routing, stages and sign-in the repository takes over.",
)
@click.option(
    "--source",
    default=_PLACEHOLDER,
    show_default=True,
    metavar="OWNER/NAME",
    help="Repository on GitHub whose releases and action the workflows use.",
)
def init(folder: Path, fork: Path | None, source: str) -> None:
    """Make the repository of a gateway in FOLDER, which is new or empty."""
    if folder.is_dir() and any(each.name != ".git" for each in folder.iterdir()):
        raise click.ClickException(f"{folder} is not empty; nothing is written")
    if not _SOURCE.fullmatch(source):
        raise click.ClickException(f"--source {source} is not OWNER/NAME; nothing is written")
    try:
        with TemporaryDirectory() as wheels:
            pins = fetch_release(version(DISTRIBUTION), Path(wheels)).pins
        lock = (part("environments") / "run.txt").read_text(encoding="utf-8")
        requirements = render_requirements(pins, lock)
        with TemporaryDirectory() as temporary:
            # A subfolder, because other users have no access to the temporary folder itself.
            made = Path(temporary) / "repository"
            kept = make_repository(
                made,
                folder.resolve().name,
                source=source,
                requirements=requirements,
                fork=fork,
            )
            compile_valid(made / "routing.yaml")
            shutil.copytree(made, folder, dirs_exist_ok=True)
    except (NoRelease, CannotConvert) as refused:
        raise click.ClickException(f"{refused}; nothing is written") from refused
    for line in kept:
        click.echo(line)
    count = sum(each.is_file() for each in folder.rglob("*") if ".git" not in each.parts)
    click.echo(_NEXT.format(folder=folder, count=count), nl=False)
    if source == _PLACEHOLDER:
        click.echo(
            f"Before the first push, replace {_PLACEHOLDER} in README.md, routing.yaml and "
            "the workflows by the repository whose releases you use."
        )


def make_repository(
    folder: Path, name: str, *, source: str, requirements: str, fork: Path | None = None
) -> list[str]:
    """Write the files of a repository into a folder; return the notes on the rows of a fork."""
    release = installed_release()
    for path, text in _FILES.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_filled(text, name, source, release), encoding="utf-8")
    (folder / CATALOG_FILE).write_text(release.text, encoding="utf-8")
    (folder / "requirements.txt").write_text(requirements, encoding="utf-8")
    return convert_fork(fork, folder, release) if fork else []


def _filled(text: str, name: str, source: str, release: CatalogRelease) -> str:
    filled = files("tollgate.cli.repository").joinpath("files", text).read_text(encoding="utf-8")
    for mark, value in {
        "@DAY@": release.day,
        "@NAME@": name,
        "@SHA256@": release.sha256,
        "@SOURCE@": source,
        "@VERSION@": version(DISTRIBUTION),
    }.items():
        filled = filled.replace(mark, value)
    return filled
