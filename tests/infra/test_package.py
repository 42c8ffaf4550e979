"""The wheels: their contents, their bytes, and the command that they install.

Keeps C97.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import openai
import pytest

from infra.artefact.closure import find_closure
from infra.package.__main__ import refuse
from infra.package.archives import write_archive
from tests.local_server import ROOT, environment, local_server
from tollgate import DISTRIBUTION
from tollgate.installation import PARTS
from tollgate.web.access import ACCESS

SLIM: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())
FULL: Final = tomllib.loads((ROOT / "infra" / "package" / "pyproject.toml").read_text())
VERSION: Final = SLIM["project"]["version"]
NIGHTLY: Final = pytest.mark.nightly
# The commands of a laptop that only calls a gateway.
OF_CLIENTS: Final = ("gateway.login", "gateway.keys", "gateway.spend", "routing.plan")


def build(project: Path, folder: Path) -> Path:
    """Return the wheel of a project, built in a new folder."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=project,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.iterdir()
    return wheel


@pytest.fixture(scope="module")
def slim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("slim"))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT / "infra" / "package", tmp_path_factory.mktemp("full"))


def tracked(*places: str) -> Iterator[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *places]
    found = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    yield from (each for each in found.splitlines() if (ROOT / each).exists())


def test_c97_the_wheel_has_the_package_and_each_part_and_nothing_else(slim: Path) -> None:
    with zipfile.ZipFile(slim) as archive:
        names = set(archive.namelist())
    code = {name.removeprefix("functions/") for name in tracked("functions/tollgate")}
    inside = {name for name in names if name.startswith("tollgate/parts/")}
    described = {name for name in names if ".dist-info/" in name}
    assert names == code | inside | described
    for path in PARTS.values():
        assert any(name.startswith(f"tollgate/parts/{path}") for name in inside), path
    assert {name.removeprefix("tollgate/parts/") for name in inside} <= {
        *tracked("infra", "functions", "routing.yaml")
    }
    assert {Path(name).name for name in described} == {
        *("METADATA", "WHEEL", "RECORD", "LICENSE", "entry_points.txt")
    }
    assert "tollgate/py.typed" in names
    assert not (ROOT / "build").exists()


def test_c97_both_wheels_pass_the_check_of_a_release(slim: Path, full: Path) -> None:
    assert [*refuse(slim), *refuse(full)] == []


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("tollgate_start.pth", "would be installed outside the package"),
        ("tollgate/start.pth", "could run without being imported"),
        ("tollgate/core/ids.so", "could run without being imported"),
        ("sitecustomize.py", "would be installed outside the package"),
        (f"tollgate_llm-{VERSION}.data/scripts/pip", "would be installed outside the package"),
        ("tollgate/more.py", "is not as RECORD states"),
    ],
)
def test_c97_a_file_that_was_added_to_a_wheel_is_refused(
    full: Path, tmp_path: Path, file: str, reason: str
) -> None:
    poisoned = Path(shutil.copy(full, tmp_path))
    with zipfile.ZipFile(poisoned, "a") as archive:
        archive.writestr(file, "import os")
    ended = subprocess.run(
        [sys.executable, "-m", "infra.package", str(poisoned)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert f"tollgate: {poisoned.name}: {file} {reason}" in ended.stderr.splitlines()


def test_c97_another_command_in_a_wheel_is_refused(full: Path, tmp_path: Path) -> None:
    poisoned = tmp_path / full.name
    with zipfile.ZipFile(full) as source, zipfile.ZipFile(poisoned, "w") as changed:
        for name in source.namelist():
            more = b"pip = tollgate.start:main\n" if name.endswith("entry_points.txt") else b""
            changed.writestr(name, source.read(name) + more)
    assert any(reason.startswith("entry_points.txt has") for reason in refuse(poisoned))


def test_c97_a_wheel_is_the_same_bytes_from_another_folder(slim: Path, tmp_path: Path) -> None:
    for name in tracked("functions", "infra", *("LICENSE", "README.md", ".gitignore")):
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "copy" / name)  # with another time
    for name in ("pyproject.toml", "routing.yaml"):
        shutil.copy(ROOT / name, tmp_path / "copy" / name)
    assert build(tmp_path / "copy", tmp_path / "wheel").read_bytes() == slim.read_bytes()


def test_an_archive_of_a_function_keeps_modes_and_is_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "ChatFunction"
    source.mkdir()
    shutil.copy(ROOT / "functions" / "stream_bootstrap", source)
    (source / "chat.py").write_text("")
    archives = [tmp_path / "first.zip", tmp_path / "second.zip"]
    for archive in archives:
        write_archive(source, archive)
        os.utime(source / "chat.py", (0, 0))
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with zipfile.ZipFile(archives[0]) as written:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in written.filelist}
    assert modes == {"chat.py": 0o644, "stream_bootstrap": 0o755}


def test_c97_both_distributions_have_one_version_and_one_command() -> None:
    ours, theirs = SLIM["project"], FULL["project"]
    assert ours["name"] == DISTRIBUTION
    assert theirs["version"] == VERSION
    assert theirs["dependencies"] == [f"{DISTRIBUTION}[server]=={VERSION}"]
    assert theirs["scripts"] == ours["scripts"]
    changed = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\S+)", changed, re.M)[:2] == ["Unreleased", VERSION]


def test_c97_the_image_has_the_wheel_runs_without_privileges_and_asks_for_its_health() -> None:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
    _, last = text.split("\nFROM ${PYTHON}\n")
    copied = re.findall(r"^COPY (?!--from)(\S+) ", text, re.M)
    assert "dist/tollgate_llm_slim-*.whl" in copied
    assert "functions" not in str(copied)
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    assert {f"!{source}" for source in copied} <= {*sent}
    assert re.findall(r"^USER (\S+)$", last, re.M) == ["10001:10001"]
    (port,) = re.findall(r"^EXPOSE (\d+)$", last, re.M)
    (path,) = re.findall(rf"^HEALTHCHECK .*'http://127\.0\.0\.1:{port}(/\S+)'", last, re.M)
    assert ("GET", path) in ACCESS


def test_c97_programs_of_python_that_a_command_runs_are_installed_with_it() -> None:
    run = {
        name
        for folder in ("functions/tollgate/cli", "infra/artefact")
        for file in (ROOT / folder).rglob("*.py")
        for name in re.findall(r'"-m", "([a-z]+)"', file.read_text())
    }
    # `uvx --from tollgate-llm tollgate init` has an environment without pip.
    assert run - sys.stdlib_module_names <= {
        re.split(r"\W", each)[0] for each in SLIM["project"]["optional-dependencies"]["server"]
    }
    assert "pip" in run


@pytest.mark.parametrize("module", OF_CLIENTS)
def test_c97_a_clients_command_needs_none_of_the_servers_libraries(module: str) -> None:
    names = ["tollgate.cli.main", f"tollgate.cli.{module}"]
    reached = find_closure(ROOT / "functions", names).elsewhere
    imported = {name.partition(".")[0] for name in reached} - sys.stdlib_module_names
    # `typing_extensions` and `pydantic_core` come with pydantic.
    installed = {"typing_extensions", "pydantic_core", "yaml"}
    installed |= {name.replace("-", "_") for name in SLIM["project"]["dependencies"]}
    assert imported - {""} <= installed


def test_c97_a_command_of_the_server_says_what_to_install() -> None:
    without = (
        "import sys; sys.modules['uvicorn'] = None; from tollgate.cli.main import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", without, "serve"],
        env=environment() | {"PYTHONPATH": str(ROOT / "functions")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        "Error: This command needs a library of the server, uvicorn: install tollgate-llm, not "
        "tollgate-llm-slim alone.\n"
    )


@pytest.fixture(scope="module")
def installed(slim: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a command of the installed wheel, with an empty cache."""
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(slim)], check=True, capture_output=True)
    cache = tmp_path_factory.mktemp("cache")
    return {"PYTHONPATH": str(site), "XDG_CACHE_HOME": str(cache)}


def command_of(installed: dict[str, str]) -> Path:
    return Path(installed["PYTHONPATH"], "bin", "tollgate")


@NIGHTLY
def test_c97_without_a_package_index_one_sentence_says_what_to_do(
    installed: dict[str, str], tmp_path: Path
) -> None:
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "XDG_CACHE_HOME": str(tmp_path)}
    ended = subprocess.run(
        [command_of(installed), "dev", "--port", "0"],
        cwd=tmp_path,
        env=environment() | installed | offline,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    (error,) = (line for line in ended.stderr.splitlines() if line.startswith("Error: "))
    assert error.endswith(
        "; without a connection to the package index, name a mirror in PIP_INDEX_URL or a proxy in "
        "HTTPS_PROXY, then run the command again"
    )


@NIGHTLY
def test_c97_the_installed_command_serves_in_an_empty_folder(
    installed: dict[str, str], tmp_path: Path
) -> None:
    command, state = command_of(installed), tmp_path / "state"
    with (
        local_server(state, tollgate=command, folder=tmp_path, extra=installed) as server,
        openai.OpenAI(base_url=server.base_url, api_key=server.key, max_retries=0) as client,
    ):
        hello = [{"role": "user", "content": "Hello"}]
        reply = client.chat.completions.create(model="test/echo", messages=hello)
    assert reply.choices[0].message.content == "Hello"
    (made,) = Path(installed["XDG_CACHE_HOME"], "tollgate").glob("ministack-*/stamp")
    assert made.parent.name.startswith(f"ministack-{VERSION}-")
