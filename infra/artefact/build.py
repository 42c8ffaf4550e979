"""One function's folder: its entry file, what that reaches, and the compiled routing file."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.artefact.bytecode import compile_all
from infra.artefact.closure import closure
from infra.artefact.site import Site
from tollgate.routing.compile import compile_catalog

ROUTING_FILE: Final = "routing.json"


@dataclass(frozen=True, slots=True)
class Function:
    """What it starts with: a module, and files that are not Python."""

    module: str
    beside: tuple[str, ...] = ()


# By logical id in infra/template.yaml.
FUNCTIONS: Final = {
    "ChatFunction": Function("chat", ("stream_bootstrap",)),
    "ApiFunction": Function("api"),
    "SweeperFunction": Function("sweeper"),
    "RollupFunction": Function("rollup"),
}


def build(function: Function, *, source: Path, site: Site, routing: Path, output: Path) -> None:
    """Fill `output`, which SAM made empty; InvalidRouting if the routing file may not be used."""
    compiled = compile_catalog(routing)
    ours = closure(source, [function.module])
    _copy(site.folder, site.files_for(ours.elsewhere), output)
    _copy(source, [it.relative_to(source) for it in ours.files], output)
    _copy(source, map(Path, function.beside), output)
    (output / ROUTING_FILE).write_bytes(compiled.content)


def compile_ours(python: str, source: Path, output: Path) -> None:
    """Compile what is not a dependency: those were compiled when they were installed."""
    ours = [output / it.name for it in source.iterdir() if (output / it.name).exists()]
    compile_all(python, output, [it for it in ours if it.is_dir() or it.suffix == ".py"])


def _copy(source: Path, files: Iterable[Path], output: Path) -> None:
    for file in files:
        (output / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file, output / file)
        shutil.copymode(source / file, output / file)
