"""Select the files of installed wheels that a function needs."""

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePath
from typing import Final

from infra.artefact.closure import find_closure
from infra.artefact.interpreters import VERSION

# Of these packages only the modules that are reached are shipped, and none of their requirements:
# botocore is 26 MB, and event streams need four small files of it.
_BY_MODULE: Final = frozenset({"botocore"})
_UNREAD: Final = frozenset({".c", ".h", ".pxd", ".pyi", ".pyx"})
# Files about the installation, which differ between machines.
_INSTALLERS_OWN: Final = frozenset({"INSTALLER", "RECORD", "REQUESTED", "WHEEL", "direct_url.json"})
_TAG: Final = f"cpython-{VERSION.replace('.', '')}"


class Site:
    """A folder that pip installed into, with bytecode beside the sources if there is any."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        installed = list(distributions(path=[str(folder)]))
        self._by_name = {_canonical(it.name): it for it in installed}
        self._by_module = {
            module: it for it in installed for module in map(_top_module, it.files or ())
        }

    def files_for(self, modules: Iterable[str]) -> frozenset[Path]:
        """Return the files that these modules need, relative to the folder.

        Raises KeyError if no installed package provides a module.
        """
        foreign = _foreign(modules)
        part = find_closure(self.folder, [it for it in foreign if self._provider(it) in _BY_MODULE])
        files = {it.relative_to(self.folder) for it in part.files}
        waiting = {self._provider(it) for it in (*foreign, *_foreign(part.elsewhere))}
        taken: set[str] = set()
        while waiting - taken:
            name = (waiting - taken).pop()
            taken.add(name)
            shipped = set(_shipped(self._by_name[name]))
            if name in _BY_MODULE:
                files |= {it for it in shipped if it.parts[0].endswith(".dist-info")}
            else:
                files |= shipped
                waiting |= self._required_by(self._by_name[name])
        return frozenset(files | set(self._bytecode(files)))

    def _provider(self, module: str) -> str:
        return _canonical(self._by_module[_top(module)].name)

    def _required_by(self, distribution: Distribution) -> set[str]:
        """Return the requirements that are installed; the lock left out what markers exclude."""
        names = {
            _canonical(requirement)
            for requirement in distribution.requires or ()
            if "extra ==" not in requirement
        }
        return names & self._by_name.keys()

    def _bytecode(self, files: Iterable[Path]) -> Iterator[Path]:
        for file in files:
            compiled = file.parent / "__pycache__" / f"{file.stem}.{_TAG}.pyc"
            if file.suffix == ".py" and (self.folder / compiled).is_file():
                yield compiled


def _shipped(distribution: Distribution) -> Iterator[Path]:
    for file in map(Path, distribution.files or ()):
        scripts = file.parts[0] in ("..", "bin")
        if not (scripts or file.suffix in _UNREAD or file.name in _INSTALLERS_OWN):
            yield file


def _foreign(modules: Iterable[str]) -> list[str]:
    return [it for it in modules if _top(it) not in sys.stdlib_module_names]


def _top(module: str) -> str:
    return module.partition(".")[0]


def _top_module(file: PurePath) -> str:
    return file.parts[0].removesuffix(".py")


def _canonical(requirement: str) -> str:
    """Return the normal form of the name that a requirement begins with (PEP 503)."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""
