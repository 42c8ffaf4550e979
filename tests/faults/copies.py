"""Runs a module over a copy of the project, with a bug in it or as it is."""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.faults.mutants import Mutant

_ROOT = Path(__file__).parent.parent.parent
# Bytecode is copied: it is as valid there, but for the file that is edited.
_NOT_SOURCE = shutil.ignore_patterns("conformance")


async def run_copy_of_project(
    root: Path, mutant: Mutant | None, module: str, *, arguments: Sequence[str]
) -> str:
    """Return what the module prints; without a bug it must end well."""
    for folder in ("functions", "tests"):
        shutil.copytree(_ROOT / folder, root / folder, ignore=_NOT_SOURCE)
    if mutant is not None:
        mutant.apply(root)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        cwd=root,
        env={**os.environ, "PYTHONPATH": f"{root / 'functions'}:{root}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    if mutant is None:
        assert process.returncode == 0, output.decode()[-1500:]
    return output.decode()
