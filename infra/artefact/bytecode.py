"""Bytecode next to its sources: /var/task is read-only, so every process would compile again."""

import subprocess
from collections.abc import Iterable
from pathlib import Path


def compile_all(python: str, root: Path, places: Iterable[Path]) -> None:
    """Compile files and folders of `root`, which is /var/task on Lambda.

    The bytecode has unchecked hashes, so it stays valid whatever times the sources get when Lambda
    unpacks the zip. Sources are shipped too: an interpreter of another version ignores the
    bytecode, and only starts more slowly.
    """
    # One process compiles in a fixed order, because bytecode depends on which strings the compiler
    # has seen before.
    subprocess.run(
        [
            *(python, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(root), "-p", "/var/task"),
            *sorted(map(str, places)),
        ],
        check=True,
    )
