"""Compilation to bytecode, because a running process cannot store bytecode in Lambda's read-only
/var/task.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path


def compile_all(python: str, root: Path, places: Iterable[Path]) -> None:
    """Compile files and folders in `root`, which becomes /var/task on Lambda.

    Unchecked hashes keep the bytecode valid, since Lambda may change the modification times of
    sources. Sources are shipped too, since an interpreter of another version ignores the bytecode.
    """
    # A single process compiles all files in a fixed order, because bytecode depends on the strings
    # that the compiler has interned earlier.
    subprocess.run(
        [
            *(python, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"),
            *("-s", str(root), "-p", "/var/task"),
            *sorted(map(str, places)),
        ],
        check=True,
    )
