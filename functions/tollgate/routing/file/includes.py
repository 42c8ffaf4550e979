"""Finds the files that a routing file includes, all of them within its repository."""

import os
from collections.abc import Iterator
from glob import has_magic, iglob
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

FILES_MAX: Final = 1_000


class Included(Struct, frozen=True):
    """The files that match a glob, sorted by name, or an error code and message."""

    files: tuple[Path, ...] = ()
    code: str = ""
    message: str = ""


def find_included(main: Path, glob: str, top: Path | None = None) -> Included:
    """Return a glob's files within `top`, which defaults to the repository or folder of `main`."""
    folder = main.parent
    repository = None if top else _repository_of(folder)
    inside = (top or repository or folder).resolve()
    place = "the repository" if top or repository else "this file's folder"
    outside = Included(code="R008", message=f'"{glob}" is outside {place}')
    if _leads_out(folder.resolve(), glob, inside):
        return outside
    files = tuple(islice(_matching(folder, glob), FILES_MAX + 1))
    if len(files) > FILES_MAX:
        return Included(code="R008", message=f'"{glob}" includes more than {FILES_MAX} files')
    found = {file.resolve() for file in files}
    if not all(file.is_relative_to(inside) for file in found):
        return outside
    if main.resolve() in found:
        return Included(code="R008", message=f'"{glob}" includes this file itself')
    if not files:
        return Included(code="R007", message=f"{(folder / glob).as_posix()} is not a file")
    return Included(files=tuple(sorted(files)))


def _repository_of(folder: Path) -> Path | None:
    """Return the nearest parent folder with a `.git` folder, or with a `.git` file as in a
    worktree.
    """
    here = folder.resolve()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), None)


def _leads_out(folder: Path, glob: str, inside: Path) -> bool:
    """Return True if a glob could match files outside `inside`; no folder is read."""
    parts = Path(glob).parts
    fixed = next((at for at, part in enumerate(parts) if has_magic(part)), len(parts))
    begins = Path(os.path.normpath(folder.joinpath(*parts[:fixed])))
    return ".." in parts[fixed:] or not begins.is_relative_to(inside)


def _matching(folder: Path, glob: str) -> Iterator[Path]:
    path = folder / glob
    if path.is_file():
        yield path
        return
    for name in iglob(glob, root_dir=folder, recursive=True):
        if (folder / name).is_file():
            yield folder / name
