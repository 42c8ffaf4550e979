"""A function whose models the build has prepared does what pydantic does, without pydantic."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.artefact.building import ROOT

PROGRAM: Final = Path(__file__).with_name("print_models.py")
PREPARE_ALL: Final = """
import sys
sys.path.insert(0, ".")
from importlib import import_module
from pathlib import Path
import chat
for file in sorted(Path("tollgate").rglob("*.py")):
    name = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    import_module(name)
from tollgate.core.prepared_models import PreparedModel, PreparedRootModel, _VALIDATORS
def below(model):
    for it in model.__subclasses__():
        yield it
        yield from below(it)
ours = set(below(PreparedModel)) - {PreparedRootModel}
for model in ours:
    if model.__name__ != "BaseSettings":
        _VALIDATORS[model]
unwanted = "pydantic", "pydantic_core.core_schema"
print(len(ours), [it for it in unwanted if it in sys.modules])
"""
ENVIRONMENTS: Final[tuple[dict[str, str], ...]] = (
    {},
    {
        "TOLLGATE_CORE_TABLE": "core",
        "tollgate_key_prefix": "sk-other-",
        "TOLLGATE_METRICS_LOOPBACK": "yes",
        "TOLLGATE_RECORD_DAYS": "31",
        "TOLLGATE_ALLOWED_ORIGINS": "https://a.example, https://b.example,",
        "TOLLGATE_KEY_VARIABLES": "HF_TOKEN,ACME_*",
        "TOLLGATE_OBJECTS_FOLDER": "/some/folder",
        "TOLLGATE_CATALOG_FILE": "unstated.json",
        "TOLLGATE_UNKNOWN": "x",
        "AWS_REGION": "eu-central-1",
        "AWS_SESSION_TOKEN": "",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
        "CLOUDSDK_CONFIG": "/g",
        "GOOGLE_APPLICATION_CREDENTIALS": "g.json",
    },
    # What has an alias is read by its field's name too, behind the alias.
    {"TOLLGATE_AWS_REGION": "a", "CLOUDSDK_CONFIG": "/g", "TOLLGATE_GCLOUD_FOLDER": "/other"},
    {"TOLLGATE_RECORD_DAYS": "29", "TOLLGATE_KEY_VARIABLES": "a b", "TOLLGATE_BODY_BYTES_MAX": "x"},
)


def test_no_module_of_the_function_needs_pydantic(interpreter: str, for_host: Path) -> None:
    """It fails where one imports pydantic, and where a model has no validator."""
    ran = run([interpreter, "-I", "-S", "-c", PREPARE_ALL], for_host / "ChatFunction", {})
    count, loaded = ran.splitlines()[0].split(" ", 1)
    assert int(count) > 300
    assert loaded == "[]"


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_models_of_the_function_read_what_pydantic_reads(
    environment: dict[str, str], interpreter: str, for_host: Path
) -> None:
    function = for_host / "ChatFunction"
    arguments = [function / "routing.json"]
    here = run([sys.executable, PROGRAM, ROOT / "functions", *arguments], ROOT, environment)
    there = run([interpreter, "-I", "-S", PROGRAM, function, *arguments], function, environment)
    assert there.splitlines() == here.splitlines()


def run(command: list[str | Path], folder: Path, environment: dict[str, str]) -> str:
    """Run a program with this environment alone; its output."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    ran = subprocess.run(
        command, cwd=folder, env=kept | environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
