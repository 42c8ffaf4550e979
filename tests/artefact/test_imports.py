"""What the streaming function imports before it can answer: a cold start is little else."""

import re
import subprocess
from pathlib import Path
from typing import Final

REVIEWED: Final = Path(__file__).with_name("streaming_imports.txt")
DUMP: Final = """
import sys
sys.path.insert(0, ".")
import chat
for name in sys.modules:
    if name.partition(".")[0] not in sys.stdlib_module_names:
        print(name)
"""
# Cython and sysconfig name their bookkeeping by version and platform.
BOOKKEEPING: Final = re.compile(r"__main__|_?cython_.*|_sysconfigdata.*")


PREPARED: Final = """
import sys
sys.path.insert(0, ".")
import chat
from tollgate.settings import Settings
chat.wire_function(Settings(catalog_file="routing.json"))
from tollgate.ingress.chat_completions.wire.request import ChatFields
from tollgate.routing.schema import CompiledRouting, ModelSection
for model in ChatFields, CompiledRouting, ModelSection:
    print(type(model.__pydantic_validator__).__name__)
"""


def test_streaming_starts_with_validators_of_the_build(interpreter: str, for_host: Path) -> None:
    result = subprocess.run(
        [interpreter, "-I", "-S", "-c", PREPARED],
        cwd=for_host / "ChatFunction",
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["SchemaValidator"] * 3


def test_streaming_starts_with_reviewed_imports_only(interpreter: str, for_host: Path) -> None:
    """Whoever adds a line to streaming_imports.txt says in the commit what it costs."""
    result = subprocess.run(
        # The artefact and the standard library, nothing that is installed on this machine.
        [interpreter, "-I", "-S", "-c", DUMP],
        cwd=for_host / "ChatFunction",
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(result.stdout.split())
    packages = {it for it in loaded if "." not in it and not BOOKKEEPING.fullmatch(it)}
    imported = packages | {it for it in loaded if it.startswith("tollgate.")}
    reviewed = set(REVIEWED.read_text().split())
    assert imported - reviewed == set(), "imported, but not reviewed"
    assert reviewed - imported == set(), "reviewed, but no longer imported"
