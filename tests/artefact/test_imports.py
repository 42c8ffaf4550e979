"""What a function imports before it can answer: a cold start is little else."""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).parent
DUMP: Final = """
import sys
sys.path.insert(0, ".")
{start}
for name in sys.modules:
    if name.partition(".")[0] not in sys.stdlib_module_names:
        print(name)
"""
# Cython and sysconfig name their bookkeeping by version and platform.
BOOKKEEPING: Final = re.compile(r"__main__|_?cython_.*|_sysconfigdata.*")


WIRE: Final = """
import chat
from tollgate.settings import Settings
chat.wire_function(Settings(catalog_file="routing.json"))
"""


@pytest.mark.parametrize(
    ("function", "start", "list_"),
    [
        ("ChatFunction", WIRE, "streaming_imports.txt"),
        ("ApiFunction", "import api", "buffered_imports.txt"),
    ],
)
def test_a_function_starts_with_reviewed_imports_only(
    function: str, start: str, list_: str, interpreter: str, for_host: Path
) -> None:
    """Whoever adds a line to a list says in the commit what it costs."""
    result = subprocess.run(
        # The artefact and the standard library, nothing that is installed on this machine.
        [interpreter, "-I", "-S", "-c", DUMP.format(start=start)],
        cwd=for_host / function,
        env={
            "TOLLGATE_CATALOG_FILE": "routing.json",
            "TOLLGATE_OPENAPI_FILE": "openapi.json",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(result.stdout.split())
    packages = {it for it in loaded if "." not in it and not BOOKKEEPING.fullmatch(it)}
    imported = packages | {it for it in loaded if it.startswith("tollgate.")}
    reviewed = set((FOLDER / list_).read_text().split())
    assert imported - reviewed == set(), "imported, but not reviewed"
    assert reviewed - imported == set(), "reviewed, but no longer imported"
