"""A gateway's repository with only the wheel: made, checked, served, planned and deployed.

Keeps C97.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import anthropic
import openai
import pytest

from tests.infra.account import SAM, running_account
from tests.infra.terminal import on_terminal
from tests.infra.test_package import build
from tests.local_server import ROOT, environment, local_server
from tests.ministack import ministack_command

pytestmark = pytest.mark.nightly

GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.com",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.com",
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a command of the installed wheel, with an index that has both wheels."""
    index, site = tmp_path_factory.mktemp("index"), tmp_path_factory.mktemp("site")
    slim = build(ROOT, tmp_path_factory.mktemp("slim"))
    full = build(ROOT / "infra" / "package", tmp_path_factory.mktemp("full"))
    for wheel in (slim, full):
        (index / wheel.name).write_bytes(wheel.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(site), str(slim)], check=True, capture_output=True)
    return {"PYTHONPATH": str(site), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}


@pytest.fixture(scope="module")
def repository(installed: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty") / "my-gateway"
    began = time.monotonic()
    made = run(folder.parent, installed, "init", "my-gateway")
    assert made.returncode == 0, made.stderr
    assert "my-gateway has 8 files" in made.stdout
    assert folder.stat().st_mode == folder.parent.joinpath("my-gateway/.github").stat().st_mode
    lines = sum(len(file.read_bytes().splitlines()) for file in folder.rglob("*") if file.is_file())
    print(f"init: {time.monotonic() - began:.1f} s, {lines} lines")
    return folder


def run(
    folder: Path, installed: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(installed), *arguments],
        cwd=folder,
        env=environment() | installed | GIT,
        capture_output=True,
        text=True,
        check=False,
    )


def command(installed: dict[str, str]) -> Path:
    return Path(installed["PYTHONPATH"], "bin", "tollgate")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | GIT, check=True, capture_output=True
    )


def test_c97_the_requirements_have_the_hashes_of_both_wheels(
    installed: dict[str, str], repository: Path
) -> None:
    text = (repository / "requirements.txt").read_text()
    for wheel in Path(installed["PIP_FIND_LINKS"]).iterdir():
        name, version, *_ = wheel.name.split("-")
        digest = subprocess.run(
            ["sha256sum", wheel], check=True, capture_output=True, text=True
        ).stdout.split()[0]
        pinned = f"{name.replace('_', '-')}=={version} \\\n    --hash=sha256:{digest}\n"
        assert pinned in text
    assert "\nboto3==" in text


def test_c97_a_pull_requests_plan_reads_both_catalogs_from_git(
    installed: dict[str, str], repository: Path
) -> None:
    checked = run(repository, installed, "check")
    assert checked.returncode == 0, checked.stdout
    git(repository, "init", "--quiet", "--initial-branch=main")
    git(repository.parent, "init", "--quiet", "--bare", "remote.git")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "begin")
    git(repository, "remote", "add", "origin", "../remote.git")
    git(repository, "push", "--quiet", "origin", "main")
    file = repository / "routing.yaml"
    before = file.read_text()
    file.write_text(before.replace("aliases:", "models: { openai/gpt-4o: null }\n\naliases:"))
    planned = run(repository, installed, "plan", "origin/main")
    file.write_text(before)
    assert planned.returncode == 2, planned.stdout + planned.stderr
    assert "openai/gpt-4o" in planned.stdout


def test_c97_dev_serves_both_sdks_in_the_repository(
    installed: dict[str, str], repository: Path, tmp_path: Path
) -> None:
    # ministack comes from the package index, as on a machine of a developer.
    only = {"PYTHONPATH": installed["PYTHONPATH"], "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with local_server(
        tmp_path / "state", tollgate=command(installed), folder=repository, extra=only
    ) as server:
        with openai.OpenAI(base_url=server.base_url, api_key=server.key) as client:
            hello = [{"role": "user", "content": "Hello"}]
            reply = client.chat.completions.create(model="test/echo", messages=hello)
            assert reply.choices[0].message.content == "Hello"
        base_url = server.base_url.removesuffix("/v1")
        with anthropic.Anthropic(base_url=base_url, api_key=server.key) as messages:
            said = messages.messages.create(model="test/echo", max_tokens=50, messages=hello)
            assert said.content[0].text == "Hello"


def test_c97_it_is_deployed_from_the_package_on_a_terminal(
    installed: dict[str, str], repository: Path, tmp_path: Path
) -> None:
    if not SAM.exists() or ministack_command() is None:
        pytest.skip("the SAM CLI or ministack is not installed: run `make test`")
    kept = {it: os.environ[it] for it in os.environ if it.startswith(("PIP_", "SSL_", "HTTP"))}
    kept.setdefault("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
    with running_account(tmp_path) as account:
        deployed = on_terminal(
            [command(installed), "deploy"],
            {**account, **kept, "PYTHONPATH": installed["PYTHONPATH"], "SAM": str(SAM)},
            [("AWS region [us-east-1]:", ""), ("E-mail", ""), ("Deploy this changeset?", "y")],
            folder=repository,
            # Installing the wheels of the functions is silent.
            silence_max_s=900,
        )
    assert (deployed.status, deployed.unasked) == (0, ()), deployed.screen
    assert " is live." in deployed.screen
    template = (repository / ".aws-sam/source/infra/template.yaml").read_text()
    assert "secret:tollgate/openai>https://api.openai.com" in template
    assert "tollgate/voyage" not in template
    steps = deployed.screen.partition(" is live.")[2]
    assert steps.count("create-secret") == 2
    assert steps.index("create-secret") < steps.index("/api/console") < steps.index("first-key")
