"""Content of a function's folder: the modules that its entry file reaches, and compiled files."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from infra.artefact.bytecode import compile_all
from infra.artefact.closure import find_closure
from infra.artefact.openapi import write_openapi_document
from infra.artefact.site import Site
from tollgate.providers.ports.base import Auth
from tollgate.providers.ports.provider_batches import BatchForm
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.routing_file import Routing
from tollgate.settings import Settings
from tollgate.sign_in.configuration import read_sign_in

ROUTING_FILE: Final = "routing.json"
OPENAPI_FILE: Final = "openapi.json"
SIGN_IN_FILE: Final = "sign-in.json"

# Packages that only providers with this `auth` need; they add 4 MB (zipped).
_BY_AUTH: Final[Mapping[Auth, frozenset[str]]] = {"google": frozenset({"google"})}
# Packages that only `tollgate serve` needs: API Gateway refuses bodies in zstd, which the module
# `compression` of Python 3.14 or `backports` decodes.
_BY_SERVERS: Final = frozenset({"backports", "compression"})
# Encryption in the process adds 5 MB (zipped). Functions without it leave encryption to KMS.
_BY_ENCRYPTION: Final = frozenset({"cryptography"})
# Modules that only workers call, by which jobs run at providers: 80 KB (zipped).
_BY_WORKERS: Final = frozenset(
    {
        "tollgate.providers.simulator.simulated_jobs",
        "tollgate.providers.transports.background",
        *(f"tollgate.providers.transports.batches.{form}" for form in get_args(BatchForm)),
        "tollgate.providers.transports.job_calls",
    }
)


@dataclass(frozen=True, slots=True)
class Function:
    """A function in the template, with the facts that the build needs."""

    module: str
    """Entry module in functions/."""
    beside: tuple[str, ...] = ()
    """Files and folders in functions/ that the function needs besides Python modules."""
    calls_providers: bool = False
    """True if the function calls providers, and so needs the packages for their `auth`."""
    works_on_jobs: bool = False
    """True if the function sends jobs to providers."""
    serves_openapi: bool = False
    """True if the function serves /openapi.json, which the build writes."""
    encrypts: bool = False
    """True if the function encrypts in its process, and so needs the package for that."""
    signs_people_in: bool = False
    """True if the function reads the sign-in file, if the repository has one."""


_CHAT: Final = Function("chat", ("stream_bootstrap",), calls_providers=True, encrypts=True)
# Functions by logical id in infra/template.yaml.
FUNCTIONS: Final = {
    "ChatFunction": _CHAT,
    "ManagedChatFunction": _CHAT,
    "ApiFunction": Function(
        "api",
        ("tollgate/console",),
        serves_openapi=True,
    ),
    "SweeperFunction": Function("sweeper"),
    "BatchFunction": Function("batch", calls_providers=True, works_on_jobs=True),
    "RollupFunction": Function("rollup"),
    "ReaderFunction": Function("reader"),
    "LoginFunction": Function("sign_in", encrypts=True, signs_people_in=True),
}


def build(function: Function, *, source: Path, site: Site, routing: Path, output: Path) -> None:
    """Fill the empty folder `output`; raise InvalidRouting or InvalidSignIn for invalid files.

    The sign-in file, if there is one, is next to the routing file.
    """
    compiled = compile_catalog(routing, variables=Settings().variables)
    left_out = frozenset[str]() if function.works_on_jobs else _BY_WORKERS
    closure = find_closure(source, [function.module], left_out=left_out)
    unused = _BY_SERVERS | _unused(
        compiled.routing if function.calls_providers else Routing(version=1)
    )
    if not function.encrypts:
        unused |= _BY_ENCRYPTION
    needed = [each for each in closure.elsewhere if each.partition(".")[0] not in unused]
    _copy(site.folder, site.files_for(needed), output)
    _copy(source, [each.relative_to(source) for each in closure.files], output)
    _copy(source, _files(source, function.beside), output)
    (output / ROUTING_FILE).write_bytes(compiled.content)
    sign_in = routing.with_name(SIGN_IN_FILE)
    if function.signs_people_in and sign_in.exists():
        content = sign_in.read_bytes()
        read_sign_in(content)
        (output / SIGN_IN_FILE).write_bytes(content)
    if function.serves_openapi:
        (output / OPENAPI_FILE).write_bytes(write_openapi_document(compiled.content))


def _unused(routing: Routing) -> frozenset[str]:
    """Return the packages that no provider in the catalog needs."""
    used = {row.auth for row in routing.providers.values()}
    return frozenset().union(*(each for auth, each in _BY_AUTH.items() if auth not in used))


def _files(source: Path, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        path = source / name
        found = sorted(path.iterdir()) if path.is_dir() else (path,)
        yield from (each.relative_to(source) for each in found)


def compile_ours(python: str, source: Path, output: Path) -> None:
    """Compile our own modules; dependencies were compiled at installation."""
    sources = [output / each.name for each in source.iterdir() if (output / each.name).exists()]
    compile_all(python, output, [each for each in sources if each.is_dir() or each.suffix == ".py"])


def _copy(source: Path, files: Iterable[Path], output: Path) -> None:
    for file in files:
        (output / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, output / file)
        shutil.copymode(source / file, output / file)
