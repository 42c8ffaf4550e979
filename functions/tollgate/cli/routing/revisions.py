"""Reader of a routing file from the working tree, another file or a git revision."""

import posixpath
import shutil
import subprocess
from collections.abc import Iterator
from datetime import date
from fnmatch import fnmatchcase
from itertools import dropwhile
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

import click
from msgspec import Struct
from msgspec.structs import replace

from tollgate.routing.file.catalog_parts import (
    CATALOG_FILE,
    IN_DEVELOPMENT,
    IN_PRODUCTION,
    file_glob,
)
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.file.document import read_document
from tollgate.routing.file.includes import FILES_MAX
from tollgate.routing.file.load import inspect
from tollgate.routing.file.problems import Problem
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.routing_file import Routing
from tollgate.settings import Settings

_GIT_TIMEOUT_S: Final = 60
_FILE_BYTES_MAX: Final = 4_000_000
_SHORT: Final = 7
_REGULAR: Final = ("100644", "100755")


class Revision(Struct, frozen=True, kw_only=True):
    """A routing file at a revision."""

    name: str
    routing: Routing | None
    """None if the file has errors or is missing."""
    problems: tuple[Problem, ...] = ()
    exists: bool = True

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems with severity `error`."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def catalog(self) -> Catalog:
        """The compiled catalog; an empty one if `routing` is None."""
        return Catalog.from_json(canonical_json(self.routing or Routing(version=1)))


def read_file(file: Path, name: str, today: date) -> Revision:
    """Read a file on this machine and the files that it includes."""
    found = inspect(file, dev=False, today=today, variables=Settings().variables)
    return Revision(
        name=name, routing=found.routing, problems=found.problems, exists=file.is_file()
    )


def read_commit(reference: str, file: Path, today: date) -> Revision:
    """Read a file in a commit, and the files that it includes from the same commit."""
    commit = resolve_commit(reference)
    top = Path(_git("rev-parse", "--show-toplevel").decode().strip())
    try:
        path = (file.parent.resolve() / file.name).relative_to(top.resolve()).as_posix()
    except ValueError as outside:
        raise click.ClickException(f"{file} is not in this git repository.") from outside
    blobs = _blobs(commit)
    if path not in blobs:
        gone = Problem(file=path, line=1, column=1, code="R001", message="is not there")
        return Revision(name=commit[:_SHORT], routing=None, problems=(gone,), exists=False)
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        _write(root, path, blobs[path])
        for included in _included(root, path, blobs):
            _write(root, included, blobs[included])
        found = inspect(
            root / path, dev=False, today=today, top=root, variables=Settings().variables
        )
        problems = tuple(_without_folder(problem, root) for problem in found.problems)
    return Revision(name=commit[:_SHORT], routing=found.routing, problems=problems)


def resolve_commit(reference: str) -> str:
    """Return the full hash of a commit."""
    if not reference or reference.startswith("-"):
        raise click.ClickException(f"{reference!r} is not a revision of git.")
    arguments = ("rev-parse", "--verify", "--end-of-options", f"{reference}^{{commit}}")
    return _git(*arguments, refusal=f"{reference!r} is not a revision of git").decode().split()[-1]


def find_commit(folder: Path) -> str | None:
    """Return the checked-out commit, with a `+` if files have changed; None without git."""
    program = shutil.which("git")
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


def find_merge_base(first: str, second: str) -> str:
    """Return the last common ancestor of two commits."""
    return _git("merge-base", resolve_commit(first), resolve_commit(second)).decode().strip()


def _included(root: Path, path: str, blobs: dict[str, str]) -> Iterator[str]:
    """Yield each file in a commit that an `include` may match; `inspect` later matches exactly."""
    document = read_document(root / path, path)
    production, development = document.value(IN_PRODUCTION), document.value(IN_DEVELOPMENT)
    globs = [file_glob(str(each)) for each in production] if isinstance(production, tuple) else []
    # Parts for development are left out here, but they may need the catalog's release.
    parts = [file_glob(str(each)) for each in development] if isinstance(development, tuple) else []
    globs += [glob for glob in parts if glob == CATALOG_FILE][:1]
    folder = posixpath.dirname(path)
    found: set[str] = set()
    for glob in globs:
        pattern = posixpath.normpath(posixpath.join(folder, glob))
        # `..` is allowed only at the beginning. After `**`, which may match any number of folders,
        # `..` could lead anywhere.
        inside = dropwhile(lambda part: part == "..", glob.split("/"))
        if pattern.startswith(("/", "..")) or ".." in inside:
            raise click.ClickException(f"{path} includes {glob}, which is not in the repository.")
        # In fnmatch, `*` also matches `/`, so this may find too many files, but never too few.
        loose = pattern.replace("**/", "*")
        found |= {blob for blob in blobs if fnmatchcase(blob, loose) or blob == pattern}
    if len(found) > FILES_MAX:
        raise click.ClickException(f"{path} includes more than {FILES_MAX} files.")
    yield from sorted(found - {path})


def _blobs(commit: str) -> dict[str, str]:
    """Return the blobs of a commit's regular files by path, leaving out files that are too large
    for a routing file.
    """
    blobs: dict[str, str] = {}
    for row in _git("ls-tree", "-r", "-l", "-z", "--full-tree", commit).split(b"\0"):
        if row:
            facts, _, path = row.partition(b"\t")
            mode, _, blob, size = facts.decode().split()
            if mode in _REGULAR and int(size) <= _FILE_BYTES_MAX:
                blobs[path.decode("utf-8", "replace")] = blob
    return blobs


def _write(root: Path, path: str, blob: str) -> None:
    if ".." in PurePosixPath(path).parts:
        raise click.ClickException(f"{path} is not the path of a file.")
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(_git("cat-file", "blob", blob))


def _without_folder(problem: Problem, root: Path) -> Problem:
    prefix = f"{root.as_posix()}/"
    return replace(
        problem,
        file=problem.file.removeprefix(prefix),
        message=problem.message.replace(prefix, ""),
    )


def _git(*arguments: str, refusal: str = "git refuses") -> bytes:
    """Run git and return its output; raise ClickException with git's message if it fails."""
    program = shutil.which("git")
    if program is None:
        raise click.ClickException("git is not installed.")
    try:
        ended = subprocess.run(  # noqa: S603 - no shell; revisions never begin with a dash
            [program, *arguments], capture_output=True, check=False, timeout=_GIT_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as late:
        raise click.ClickException(f"git {arguments[0]} took too long.") from late
    if ended.returncode:
        words = ended.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
        raise click.ClickException(f"{refusal}: {words}")
    return ended.stdout
