"""Selection of files from installed wheels for a function."""

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePath
from typing import Final

from infra.artefact.closure import find_closure
from infra.artefact.interpreters import VERSION

# Packages of which only the modules that are reached are shipped, without the packages'
# requirements. Service models in botocore would add 26 MB.
_BY_MODULE: Final = frozenset({"aioboto3", "aiobotocore", "boto3", "botocore", "s3transfer"})
# Data files that a package reads. Functions use aioboto3 only for S3, which needs the model of S3
# and the certificate authorities for its hosts.
_READ_WITH: Final = {
    "aioboto3": (
        "botocore/cacert.pem",
        "botocore/data/_retry.json",
        "botocore/data/endpoints.json",
        "botocore/data/partitions.json",
        "botocore/data/sdk-default-configuration.json",
        "botocore/data/s3/",
    )
}
# Modules that a package imports by a computed name.
_NAMED: Final = {"aioboto3": ("aioboto3.s3.inject",)}
# Optional imports of the packages above that are left out. Without certifi, botocore uses its own
# file of certificate authorities.
_PROBED: Final = frozenset({"certifi", "cryptography"})
# Unused files. trafilatura needs babel's locale data (10 MB) only for crawls in one language.
# Functions do not open WebSockets, for which aiohttp has a compiled reader of 2 MB, and do not use
# aiohttp as a server.
_UNUSED: Final = (
    *("aiohttp/_websocket/reader_c.", "aiohttp/web", "aiohttp/worker."),
    *("aiohttp/pytest_plugin.", "aiohttp/test_utils.", "babel/locale-data/"),
)
# Patterns for the extras in a requirement, and for the extra on which a requirement depends.
_EXTRAS: Final = re.compile(r"\[([^\]]+)\]")
_OF_EXTRA: Final = re.compile(r"extra == [\"']([^\"']+)")
_UNREAD: Final = frozenset({".c", ".h", ".pxd", ".pyi", ".pyx"})
# Files about the installation, which differ between machines.
_INSTALLERS_OWN: Final = frozenset({"INSTALLER", "RECORD", "REQUESTED", "WHEEL", "direct_url.json"})
_TAG: Final = f"cpython-{VERSION.replace('.', '')}"


class Site:
    """A folder of installed packages, with or without bytecode."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Each access to the name of a distribution parses its metadata.
        self._by_name = {_canonical(each.name): each for each in distributions(path=[str(folder)])}
        self._provider_of = {
            module: name
            for name, each in self._by_name.items()
            for module in map(_top_module, each.files or ())
        }

    def files_for(self, modules: Iterable[str]) -> frozenset[Path]:
        """Return the files that these modules need, relative to the folder.

        Raises KeyError if a module is not installed.
        """
        foreign = _foreign(modules)
        parts = [each for each in foreign if self._provider(each) in _BY_MODULE]
        parts += [named for each in parts for named in _NAMED.get(_top(each), ())]
        partial = find_closure(self.folder, parts)
        reached = (each.relative_to(self.folder) for each in partial.files)
        files = {each for each in reached if each.parts[0] not in _PROBED and not _is_unused(each)}
        # Some imports are optional, and their packages may not be installed.
        optional = [each for each in _foreign(partial.elsewhere) if _top(each) in self._provider_of]
        waiting = {self._provider(each) for each in (*foreign, *optional)}
        done: set[str] = set()
        while waiting - done:
            name = (waiting - done).pop()
            done.add(name)
            shipped = set(_shipped(self._by_name[name]))
            if name in _BY_MODULE:
                files |= {each for each in shipped if each.parts[0].endswith(".dist-info")}
                files |= set(self._read_with(name))
            else:
                files |= shipped
                waiting |= self._required_by(self._by_name[name])
        return frozenset(files | set(self._bytecode(files)))

    def _read_with(self, package: str) -> Iterator[Path]:
        for name in _READ_WITH.get(package, ()):
            path = self.folder / name
            found = path.rglob("*") if name.endswith("/") else (path,)
            yield from (each.relative_to(self.folder) for each in found if each.is_file())

    def _provider(self, module: str) -> str:
        return self._provider_of[_top(module)]

    def _required_by(self, distribution: Distribution) -> set[str]:
        """Return the installed requirements of a package; markers exclude other requirements."""
        plain = [each for each in distribution.requires or () if "extra ==" not in each]
        extras = [each for requirement in plain for each in self._of_extras(requirement)]
        return {*map(_canonical, plain), *map(_canonical, extras)} & self._by_name.keys()

    def _of_extras(self, requirement: str) -> Iterator[str]:
        """Yield the requirements that the extras in a requirement add."""
        named = _EXTRAS.search(requirement)
        required = self._by_name.get(_canonical(requirement)) if named else None
        if named is None or required is None:
            return
        extras = {_canonical(extra.strip()) for extra in named[1].split(",")}
        for further in required.requires or ():
            of = _OF_EXTRA.search(further)
            if of is not None and _canonical(of[1]) in extras:
                yield further

    def _bytecode(self, files: Iterable[Path]) -> Iterator[Path]:
        for file in files:
            compiled = file.parent / "__pycache__" / f"{file.stem}.{_TAG}.pyc"
            if file.suffix == ".py" and (self.folder / compiled).is_file():
                yield compiled


def _shipped(distribution: Distribution) -> Iterator[Path]:
    for file in map(Path, distribution.files or ()):
        scripts = file.parts[0] in ("..", "bin")
        if not (
            scripts or _is_unused(file) or file.suffix in _UNREAD or file.name in _INSTALLERS_OWN
        ):
            yield file


def _is_unused(file: PurePath) -> bool:
    return file.as_posix().startswith(_UNUSED)


def _foreign(modules: Iterable[str]) -> list[str]:
    return [each for each in modules if _top(each) not in sys.stdlib_module_names]


def _top(module: str) -> str:
    return module.partition(".")[0]


def _top_module(file: PurePath) -> str:
    return file.parts[0].removesuffix(".py")


def _canonical(requirement: str) -> str:
    """Return the normalized package name at the beginning of a requirement (PEP 503)."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""
