"""Installed wheels, and which of their files a function needs."""

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePath
from typing import Final

from infra.artefact.closure import closure
from infra.artefact.interpreters import VERSION

# Of these only the modules that are reached are shipped, and nothing they merely require: botocore
# is 26 MB, and event streams need four small files of it.
_BY_MODULE: Final = frozenset({"botocore"})
_UNREAD: Final = frozenset({".c", ".h", ".pxd", ".pyi", ".pyx"})
# How a wheel came to be installed says nothing in an artefact.
_INSTALLERS_OWN: Final = frozenset({"INSTALLER", "RECORD", "REQUESTED", "WHEEL", "direct_url.json"})
_TAG: Final = f"cpython-{VERSION.replace('.', '')}"


class Site:
    """A folder that pip installed into; bytecode lies beside the sources if it could be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        installed = list(distributions(path=[str(folder)]))
        self._by_name = {_canonical(it.name): it for it in installed}
        self._by_module = {
            module: it for it in installed for module in map(_top_module, it.files or ())
        }

    def files_for(self, modules: Iterable[str]) -> frozenset[Path]:
        """What these modules need, relative to the folder; KeyError if nobody provides one."""
        foreign = _foreign(modules)
        part = closure(self.folder, [it for it in foreign if self._provider(it) in _BY_MODULE])
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
        """The lock decides: what a marker excludes is not installed."""
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
    """The normal form of the name a requirement begins with (packaging.python.org, PEP 503)."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""
