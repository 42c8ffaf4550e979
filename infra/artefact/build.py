"""One function's folder: its entry file, what that reaches, and what is compiled for it."""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.artefact.bytecode import compile_all
from infra.artefact.closure import closure
from infra.artefact.openapi import openapi_document
from infra.artefact.site import Site
from tollgate.providers.base import Auth
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.schema import Routing

ROUTING_FILE: Final = "routing.json"
OPENAPI_FILE: Final = "openapi.json"

# Packages that only rows with this `auth` need, imported with their first token: 4 MB zipped.
_BY_AUTH: Final[Mapping[Auth, frozenset[str]]] = {"google": frozenset({"google"})}


@dataclass(frozen=True, slots=True)
class Function:
    """What it starts with: a module, and files that are not Python; and if it asks providers.

    One that `describes_the_api` gets the document that says what can be asked of it.
    """

    module: str
    beside: tuple[str, ...] = ()
    asks_providers: bool = False
    describes_the_api: bool = False


# By logical id in infra/template.yaml.
FUNCTIONS: Final = {
    "ChatFunction": Function("chat", ("stream_bootstrap",), asks_providers=True),
    "ApiFunction": Function("api", describes_the_api=True),
    "SweeperFunction": Function("sweeper"),
    "RollupFunction": Function("rollup"),
}


def build(function: Function, *, source: Path, site: Site, routing: Path, output: Path) -> None:
    """Fill `output`, which SAM made empty; InvalidRouting if the routing file may not be used."""
    compiled = compile_catalog(routing)
    ours = closure(source, [function.module])
    unused = _unused(compiled.routing) if function.asks_providers else _unused(Routing(version=1))
    needed = [it for it in ours.elsewhere if it.partition(".")[0] not in unused]
    _copy(site.folder, site.files_for(needed), output)
    _copy(source, [it.relative_to(source) for it in ours.files], output)
    _copy(source, map(Path, function.beside), output)
    (output / ROUTING_FILE).write_bytes(compiled.content)
    if function.describes_the_api:
        (output / OPENAPI_FILE).write_bytes(openapi_document(compiled.content))


def _unused(routing: Routing) -> frozenset[str]:
    """The packages that no row of the catalog makes a function import."""
    used = {row.auth for row in routing.providers.values()}
    return frozenset().union(*(them for auth, them in _BY_AUTH.items() if auth not in used))


def compile_ours(python: str, source: Path, output: Path) -> None:
    """Compile what is not a dependency: those were compiled when they were installed."""
    ours = [output / it.name for it in source.iterdir() if (output / it.name).exists()]
    compile_all(python, output, [it for it in ours if it.is_dir() or it.suffix == ".py"])


def _copy(source: Path, files: Iterable[Path], output: Path) -> None:
    for file in files:
        (output / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, output / file)
        shutil.copymode(source / file, output / file)
