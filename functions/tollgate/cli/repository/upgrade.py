"""`tollgate upgrade`: changes the version of a gateway's repository, and shows the effects."""

import re
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final

import click

from tollgate import DISTRIBUTION
from tollgate.cli.options import routing_option
from tollgate.cli.routing.plan import recorded_traffic
from tollgate.cli.upgrades.report import list_changes_of, plan_catalog, refuse_upgrade
from tollgate.cli.upgrades.requirements import (
    DISTRIBUTIONS,
    NotRequirements,
    read_version,
    render_requirements,
)
from tollgate.cli.upgrades.wheels import NoRelease, fetch_release, verify_release

_REQUIREMENTS: Final = Path("requirements.txt")
# Line in which editors find the schema of a file; its address has the tag of a release.
_SCHEMA_LINK: Final = re.compile(
    r"^(# yaml-language-server: \$schema=\S+/v)[^/\s]+(/infra/schema/\S+)$", re.M
)
_TO_PRICES: Final = "`tollgate catalog refresh --release installed --write` takes it afterwards"


@click.command(epilog="Example: tollgate upgrade 1.0.0 --repository OWNER/tollgate --dry-run")
@click.argument("version", required=False)
@routing_option("--file", "Routing file whose prices and permissions are compared.")
@click.option(
    "--repository",
    envvar="TOLLGATE_REPOSITORY",
    show_envvar=True,
    metavar="OWNER/NAME",
    help="GitHub repository whose release workflow must have attested the wheels.",
)
@click.option("--unverified", is_flag=True, help="Accept wheels without an attestation.")
@click.option("--dry-run", is_flag=True, help="Write nothing.")
@click.option(
    "--traffic",
    type=click.File("rb"),
    help="Traffic from `tollgate generations export`, for the effect of prices in dollars.",
)
@click.option(
    "--url",
    envvar="TOLLGATE_URL",
    show_envvar=True,
    help="Base URL of the gateway whose traffic is replayed, with a key in TOLLGATE_KEY.",
)
@click.option("--secret", envvar="TOLLGATE_KEY", hidden=True)
@click.option(
    "--since", default="7d", show_default=True, help="Maximum age of the traffic from a gateway."
)
def upgrade(
    version: str | None,
    *,
    file: Path,
    repository: str | None,
    unverified: bool,
    dry_run: bool,
    traffic: BinaryIO | None,
    **source: Any,
) -> None:
    """Write VERSION, by default the newest, into requirements.txt, and list its effects.

    Code of the other version is not run. An older VERSION is a rollback. A version that would lose
    or misread stored data, or that has no valid attestation, is refused, and nothing changes.
    """
    try:
        current = _current_version()
        with TemporaryDirectory() as folder:
            release = fetch_release(version, Path(folder))
            if release.version == current:
                click.echo(f"{_REQUIREMENTS} has {current} already.")
                return
            attested = f"Attested by {repository} for the tag v{release.version}."
            if unverified:
                attested = "Not verified: --unverified accepts wheels without an attestation."
            elif repository is None:
                raise NoRelease(
                    "the attestation cannot be checked without a repository: state --repository, "
                    "which the workflows name in `uses:`, or --unverified"
                )
            else:
                verify_release(release, repository)
            refuse_upgrade(release)
            click.echo(f"{DISTRIBUTIONS[0]} {current} → {release.version}")
            click.echo(attested)
            named = list(list_changes_of(release, file))
            for changes in named:
                click.echo(f"\n{changes.title}\n  " + "\n  ".join(changes.lines))
            if not named:
                click.echo("The template, the API, permissions and keys of the file stay the same.")
            plan = plan_catalog(release, file, recorded_traffic(traffic, source, named=False))
            if plan is not None:
                click.echo(f"\ncatalog of {release.version}; {_TO_PRICES}\n{plan}")
            lock = release.part("environments") / "run.txt"
            written = render_requirements(release.pins, lock.read_text(encoding="utf-8"))
    except (NoRelease, NotRequirements) as refused:
        raise click.ClickException(f"{refused}. Nothing was changed.") from refused
    if dry_run:
        click.echo("\nNothing was written.")
    else:
        _REQUIREMENTS.write_text(written, encoding="utf-8")
        _link_schemas(file.parent, release.version)
        click.echo(f"\n{_REQUIREMENTS} pins {release.version}: install it, review and commit.")


def _link_schemas(folder: Path, version: str) -> None:
    """Let the files of a repository name the schemas of a version."""
    for file in folder.glob("*.yaml"):
        text = file.read_text(encoding="utf-8")
        linked = _SCHEMA_LINK.sub(rf"\g<1>{version}\g<2>", text)
        if linked != text:
            file.write_text(linked, encoding="utf-8")


def _current_version() -> str:
    """Return the pinned version, which must be installed for the comparison."""
    if not _REQUIREMENTS.is_file():
        raise NotRequirements(f"{_REQUIREMENTS} is not in this folder")
    pinned = read_version(_REQUIREMENTS.read_text(encoding="utf-8"))
    try:
        installed = installed_version(DISTRIBUTION)
    except PackageNotFoundError:
        installed = "no release"
    if pinned != installed:
        raise NotRequirements(
            f"{_REQUIREMENTS} pins {pinned}, but {installed} is installed: run pip install "
            f"--require-hashes --requirement {_REQUIREMENTS} first"
        )
    return pinned
