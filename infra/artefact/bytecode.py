"""Bytecode beside the sources: /var/task is read-only, so Lambda would compile in every process."""

import subprocess
from collections.abc import Iterable
from pathlib import Path


def compile_all(python: str, root: Path, places: Iterable[Path]) -> None:
    """Compile files and folders of `root`, which will lie at /var/task.

    Unchecked hashes: whoever unpacks the zip sets times as he likes, and the bytecode stays valid.
    The sources stay too, so that another magic number costs time and nothing else.
    """
    # One process and one order: bytecode depends on which strings the compiler has seen before.
    subprocess.run(
        [
            *(python, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(root), "-p", "/var/task"),
            *sorted(map(str, places)),
        ],
        check=True,
    )
