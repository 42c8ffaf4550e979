"""What an artefact weighs, holds and leaves out."""

import io
import json
import os
import re
import subprocess
import sys
import zipfile
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Final

import pytest

from infra.artefact.build import FUNCTIONS
from infra.artefact.closure import find_closure
from infra.artefact.interpreters import NoInterpreter
from infra.artefact.openapi import write_openapi_document
from infra.artefact.wheels import Target, install_wheels
from tests.artefact.building import ROOT, python_3_13
from tests.nightly import first
from tollgate.routing.planning.catalog import Catalog

ZIPPED_BYTES_MAX: Final = 12_000_000
# Seals conversations with cryptography, which is 5 MB (decision 237).
ZIPPED_BYTES_MAX_CHAT: Final = 16_000_000
# Files need aioboto3 and the model of S3 (decision 224).
ZIPPED_BYTES_MAX_API: Final = 15_000_000
# What verifies identity tokens, 5 MB of it cryptography (decision 217).
ZIPPED_BYTES_MAX_LOGIN: Final = 18_000_000
# PDFium, and what finds the main text of a web page (decision 223). Lambda takes 50 MB zipped.
ZIPPED_BYTES_MAX_READER: Final = 30_000_000
# What checks routing.yaml, serves people at a terminal, or stands in for AWS.
LEFT_OUT: Final = (
    "tollgate/cli",
    "tollgate/routing/file/compile.py",
    "tollgate/routing/file/crosscheck.py",
    "tollgate/routing/file/document.py",
    "tollgate/routing/file/load.py",
    "tollgate/routing/file/validate.py",
    "tollgate/web/local_app.py",
    "tollgate/wiring/whole.py",
)
NEVER_PACKED: Final = ("aiohttp/web.py", "click", "openai", "rich", "uvicorn", "yaml")
# What stores files through S3's own model, and only there.
PACKED_WITH_FILES: Final = ("aioboto3", "aiobotocore", "boto3", "botocore")
# The magic number of every 3.13 (CPython, Include/internal/pycore_magic_number.h, 2026-11-21).
MAGIC_3_13: Final = (3571).to_bytes(2, "little") + b"\r\n"
UNCHECKED_HASH: Final = (1).to_bytes(4, "little")


@pytest.fixture(scope="session", params=first(1, [Target.HOST, Target.LAMBDA]))
def target(request: pytest.FixtureRequest) -> Target:
    target: Target = request.param
    return target


@pytest.fixture(scope="session")
def built(request: pytest.FixtureRequest, target: Target) -> Path:
    """Return the folder of all artefacts that were built for a target."""
    built: Path = request.getfixturevalue("for_host" if target is Target.HOST else "for_lambda")
    return built


@pytest.fixture(params=FUNCTIONS)
def artefact(request: pytest.FixtureRequest, built: Path) -> Path:
    return built / request.param


def files(folder: Path) -> dict[str, bytes]:
    return {
        it.relative_to(folder).as_posix(): it.read_bytes()
        for it in sorted(folder.rglob("*"))
        if it.is_file()
    }


def zipped_bytes(folder: Path) -> int:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files(folder).items():
            archive.writestr(name, content)
    return packed.tell()


@pytest.mark.parametrize(
    "name", first(2, sorted(FUNCTIONS, key=lambda it: it not in ("ApiFunction", "ChatFunction")))
)
def test_an_artefact_stays_small(built: Path, name: str) -> None:
    most = {
        "ApiFunction": ZIPPED_BYTES_MAX_API,
        "BatchFunction": ZIPPED_BYTES_MAX_CHAT,
        "ChatFunction": ZIPPED_BYTES_MAX_CHAT,
        "LoginFunction": ZIPPED_BYTES_MAX_LOGIN,
        "ManagedChatFunction": ZIPPED_BYTES_MAX_CHAT,
        "ReaderFunction": ZIPPED_BYTES_MAX_READER,
    }
    assert zipped_bytes(built / name) <= most.get(name, ZIPPED_BYTES_MAX)


def test_what_reads_documents_is_shipped_to_their_reader_alone(artefact: Path) -> None:
    is_reader = artefact.name == "ReaderFunction"
    for name in ("docx", "lxml", "openpyxl", "pypdfium2", "pypdfium2_raw", "trafilatura"):
        assert (artefact / name).exists() is is_reader, name
    assert (artefact / "tollgate" / "reading" / "read.py").exists() is is_reader


def test_an_artefact_has_no_code_of_the_command_line_or_of_development(artefact: Path) -> None:
    assert (artefact / "tollgate" / "settings.py").is_file()
    for name in (*LEFT_OUT, *NEVER_PACKED, "Makefile", "requirements.txt"):
        assert not (artefact / name).exists(), name


def test_what_is_left_out_is_still_what_the_source_calls_it() -> None:
    for name in LEFT_OUT:
        assert (ROOT / "functions" / name).exists(), name


def test_only_what_generates_has_code_of_providers(artefact: Path) -> None:
    generates = artefact.name in ("BatchFunction", "ChatFunction", "ManagedChatFunction")
    assert (artefact / "tollgate" / "wiring" / "providers.py").exists() is generates
    stores_files = artefact.name in ("ApiFunction", "BatchFunction")
    for name in PACKED_WITH_FILES:
        assert (artefact / name).exists() is stores_files, name
    transports = artefact / "tollgate" / "providers" / "transports"
    for name in ("background.py", "batches", "job_calls.py"):
        assert (transports / name).exists() is (artefact.name == "BatchFunction"), name


def test_what_verifies_tokens_is_shipped_to_who_signs_in_alone(artefact: Path) -> None:
    signs_in = artefact.name == "LoginFunction"
    for name in ("joserfc", "tollgate/sign_in"):
        assert (artefact / name).exists() is signs_in, name
    seals = artefact.name in ("ChatFunction", "ManagedChatFunction")
    assert (artefact / "cryptography").exists() is (signs_in or seals)


def test_files_have_the_model_of_s3_and_of_no_other_service(built: Path) -> None:
    botocore = built / "ApiFunction" / "botocore"
    assert {it.name for it in (botocore / "data").iterdir() if it.is_dir()} == {"s3"}
    assert (botocore / "cacert.pem").is_file()
    assert not (built / "ApiFunction" / "cryptography").exists()
    # Its authorities are botocore's own file: half of certifi would hide them.
    assert not (built / "ApiFunction" / "certifi").exists()


def test_the_console_goes_with_the_function_that_serves_it(artefact: Path) -> None:
    packed = {it.relative_to(artefact / "tollgate"): it for it in artefact.rglob("console/*")}
    source = ROOT / "functions" / "tollgate"
    console = {it.relative_to(source): it for it in source.glob("console/*")}
    if artefact.name != "ApiFunction":
        assert not packed
        return
    assert {name: it.read_bytes() for name, it in packed.items()} == {
        name: it.read_bytes() for name, it in console.items()
    }


@pytest.mark.nightly
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_extension_module_is_for_python_3_13_on_arm64(for_lambda: Path, name: str) -> None:
    extensions = list((for_lambda / name).rglob("*.so"))
    assert extensions
    for extension in extensions:
        # ELF's e_machine: 183 is AArch64 (ELF for the Arm 64-bit Architecture).
        assert int.from_bytes(extension.read_bytes()[18:20], "little") == 183, extension
        # PDFium is a library without Python in it.
        assert re.search(r"\.cpython-313-|\.abi3\.|^libpdfium\.so$", extension.name), extension


def test_the_compiled_routing_file_is_the_one_of_production(artefact: Path) -> None:
    content = (artefact / "routing.json").read_bytes()
    catalog = Catalog.from_json(content)
    assert "openai/gpt-5.2" in json.loads(content)["models"]
    assert not any(slug.startswith("test/") for slug in json.loads(content)["models"])
    assert catalog.providers


def test_the_wrapper_is_executable(built: Path) -> None:
    assert os.access(built / "ChatFunction" / "stream_bootstrap", os.X_OK)
    assert not (built / "ApiFunction" / "stream_bootstrap").exists()


def test_every_source_has_bytecode_that_the_times_of_a_zip_cannot_invalidate(
    interpreter: str, artefact: Path
) -> None:
    for source in artefact.rglob("*.py"):
        compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
        assert compiled.read_bytes()[:8] == MAGIC_3_13 + UNCHECKED_HASH, source
    if sys.version_info[:2] == (3, 13):
        assert MAGIC_NUMBER == MAGIC_3_13


def test_bytecode_names_the_place_where_lambda_puts_it(interpreter: str, built: Path) -> None:
    compiled = built / "ChatFunction" / "__pycache__" / "chat.cpython-313.pyc"
    assert b"/var/task/chat.py" in compiled.read_bytes()
    assert str(built).encode() not in compiled.read_bytes()


@pytest.mark.nightly
def test_the_same_source_gives_the_same_artefact(
    built: Path, target: Target, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    subprocess.run(
        [
            *(sys.executable, "-m", "infra.artefact", "ChatFunction", str(again)),
            *("--target", target, "--python", python_3_13() or ""),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "functions")},
        check=True,
    )
    assert files(again) == files(built / "ChatFunction")


def test_every_function_of_the_template_is_built(built: Path) -> None:
    assert {entry.name for entry in built.iterdir() if entry.is_dir()} == set(FUNCTIONS)
    for name in FUNCTIONS:
        assert f"CodeUri: {name}" in (built / "template.yaml").read_text()


def test_an_import_within_a_function_is_reached(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "late.py").write_text("from . import later")
    (tmp_path / "package" / "later.py").write_text("import os.path, elsewhere.part")
    (tmp_path / "package" / "unreached.py").write_text("")
    (tmp_path / "entry.py").write_text("def f():\n    from package import late")
    found = find_closure(tmp_path, ["entry"])
    names = {it.relative_to(tmp_path).as_posix() for it in found.files}
    assert names == {"entry.py", "package/__init__.py", "package/late.py", "package/later.py"}
    assert found.elsewhere == {"os.path", "elsewhere.part"}


def test_a_module_is_left_out_with_what_only_it_imports(tmp_path: Path) -> None:
    for name, content in {
        "entry": "import client, shared",
        "client": "import shared, calls",
        "shared": "",
        "calls": "",
    }.items():
        (tmp_path / f"{name}.py").write_text(content)
    found = find_closure(tmp_path, ["entry"], left_out=["client"])
    assert {it.stem for it in found.files} == {"entry", "shared"}


@pytest.mark.parametrize("named", ["DottedName", "DottedName[X]"])
def test_a_dotted_name_is_reached(named: str, tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "late.py").write_text("")
    (tmp_path / "entry.py").write_text(f"ROWS = {{1: {named}('package.late:X')}}")
    found = find_closure(tmp_path, ["entry"])
    assert tmp_path / "package" / "late.py" in found.files


def test_a_lock_that_needs_markers_is_not_built_from_unseen() -> None:
    # pip reads markers for the interpreter that runs it, not for the one that it installs for.
    # Both are CPython, and on Linux.
    lock = (ROOT / "functions" / "requirements.txt").read_text()
    markers = re.findall(r"^[^#\n]*; (.*) \\$", lock, re.MULTILINE)
    alike = r"(platform_python|)_?implementation(_name|) != 'PyPy'|sys_platform == 'win32'"
    read = [part for marker in markers for part in marker.split(" and ")]
    assert not [part for part in read if not re.fullmatch(alike, part)]


def test_a_host_artefact_without_an_interpreter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoInterpreter, match=r"Python 3\.13"):
        install_wheels(ROOT / "functions" / "requirements.txt", tmp_path, Target.HOST, None)


def test_c6_the_api_has_the_description_of_the_app_that_is_built(built: Path) -> None:
    """It fails where the document is older than a route or a model."""
    built = built / "ApiFunction"
    now = write_openapi_document((built / "routing.json").read_bytes())
    assert (built / "openapi.json").read_bytes() == now
    for function in set(FUNCTIONS) - {"ApiFunction"}:
        assert not (built / function / "openapi.json").exists()
