"""A gateway's repository with only the wheel: from `init` to the rollback of a deployed upgrade.

Keeps C96, C97.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import anthropic
import openai
import pytest

from tests.functional.cut_wheels import recut
from tests.infra.account import SAM, running_account
from tests.infra.action import git, run_step
from tests.infra.served_stack import client, serving_stack
from tests.infra.terminal import on_terminal
from tests.infra.test_package import VERSION, build
from tests.local_server import ROOT, LocalServer, environment, local_server
from tests.ministack import ministack_command
from tests.traffic import line, planning_request, record
from tollgate.installation import PARTS
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.planning.catalog import Catalog

# The release before has the code of this one, other prices, another permission and a parameter.
BEFORE: Final = "0.9.0"
CHANGES: Final = {
    PARTS["routing"]: [
        ("input: 2.20\n          output: 11.00", "input: 4.40\n          output: 22.00"),
        ("input: 2.00\n          output: 10.00", "input: 4.00\n          output: 20.00"),
    ],
    PARTS["template"]: [
        ("Parameters:\n", 'Parameters:\n  Retired: {Type: String, Default: ""}\n'),
        ("- dynamodb:BatchGetItem\n", "- dynamodb:PartiQLSelect\n"),
    ],
}
STACK: Final = ("--stack", "tollgate", "--region", "us-east-1")
GH: Final = '#!/bin/sh\nprintf "%s\\n" "$*" >> "$HOME/gh.txt"\n'


@dataclass(frozen=True)
class Machine:
    """A developer's machine: an index with two releases, and the one that is installed."""

    home: Path

    @property
    def command(self) -> Path:
        return self.home / "site" / "bin" / "tollgate"

    @property
    def variables(self) -> dict[str, str]:
        return {
            **environment(),
            "HOME": str(self.home),
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
            "PIP_FIND_LINKS": str(self.home / "index"),
            "PIP_NO_INDEX": "1",
            "PYTHONPATH": str(self.home / "site"),
        }

    def install(self, *pins: str) -> None:
        """Install both wheels of a release; their libraries are those of this environment."""
        site = self.home / "site"
        shutil.rmtree(site, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site)]
        subprocess.run([*pip, *pins], check=True, capture_output=True, env=self.variables)

    def run(self, folder: Path, *arguments: str, status: int = 0, **variables: str) -> str:
        """Return what a command of the installed release prints."""
        ended = subprocess.run(
            [self.command, *arguments],
            cwd=folder,
            env=self.variables | variables | {"PYTHONPATH": str(self.home / "site")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == status, ended.stdout + ended.stderr
        return ended.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if not SAM.exists() or ministack_command() is None:
        pytest.skip("the SAM CLI or ministack is not installed: run `make test`")
    index = tmp_path / "index"
    full = build(ROOT / "infra" / "package", index)
    slim = Path(shutil.copy(build(ROOT, tmp_path / "slim"), index))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    recut(full, BEFORE, {})
    recut(slim, BEFORE, {f"tollgate/parts/{path}": _before(path) for path in CHANGES})
    return Machine(tmp_path)


def _before(path: str) -> str:
    text = (ROOT / path).read_text()
    for now, before in CHANGES[path]:
        assert now in text
        text = text.replace(now, before)
    return text


def _processor_s() -> float:
    """Return the processor time of this process and of its processes that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


@contextmanager
def timed(name: str) -> Iterator[None]:
    began, used = time.monotonic(), _processor_s()
    yield
    took, busy = time.monotonic() - began, _processor_s() - used
    print(f"{name}: {took:.1f} s, {busy:.1f} s of a processor")


@pytest.mark.nightly
def test_c97_a_repository_is_served_planned_deployed_upgraded_and_rolled_back(
    machine: Machine, tmp_path: Path
) -> None:
    with timed("install"):
        machine.install(f"tollgate-llm=={BEFORE}", f"tollgate-llm-slim=={BEFORE}")
    with timed("init"):
        repository = make_repository(machine)
    traffic = write_traffic(repository, tmp_path / "traffic.jsonl")
    with (
        timed("dev and plan"),
        serving(machine, repository) as server,
    ):
        call_by_both_sdks(server)
        plan_a_pull_request(machine, repository, server, traffic)
    decide(repository)
    with running_account(tmp_path) as account:
        with timed("first deploy"):
            first = deploy(machine, repository, account, [("AWS region", ""), ("E-mail", "")])
        assert_next_steps(first)
        assert granted(account) == {BEFORE}
        # The stage's region, which the first deploy asked for.
        git(repository, "commit --quiet --all -m deployed")
        with timed("first key and doctor"):
            key = make_keys(machine, repository, account)
            assert "secrets are missing" in examine(machine, repository, account, key)
        store_secrets(account)
        stored = count_items(account)
        with timed("upgrade"):
            upgrade(machine, repository, traffic)
        with timed("second deploy"):
            deploy(machine, repository, account)
        assert granted(account) == {VERSION}
        with timed("rollback"):
            rolled = machine.run(repository, "upgrade", BEFORE, "--repository", "acme/tollgate")
            assert f"tollgate-llm {VERSION} → {BEFORE}\n" in rolled
            install_pinned(machine, repository)
            deploy(machine, repository, account)
        assert granted(account) == {BEFORE}
        assert count_items(account) == stored
        with timed("doctor after the rollback"):
            assert "secrets: all 2 exist" in examine(machine, repository, account, key)


def make_repository(machine: Machine) -> Path:
    """Make a repository, push it to a remote, and check it."""
    repository = machine.home / "work" / "my-gateway"
    repository.parent.mkdir()
    made = machine.run(repository.parent, "init", "my-gateway", "--source", "acme/tollgate")
    assert "my-gateway has 9 files" in made
    files = [file for file in repository.rglob("*") if file.is_file()]
    print(f"{len(files)} files, {sum(len(it.read_bytes().splitlines()) for it in files)} lines")
    text = (repository / "requirements.txt").read_text()
    for wheel in machine.home.glob(f"index/*-{BEFORE}-*"):
        name = wheel.name.partition("-")[0].replace("_", "-")
        digest = subprocess.run(["sha256sum", wheel], check=True, capture_output=True, text=True)
        assert f"{name}=={BEFORE} \\\n    --hash=sha256:{digest.stdout.split()[0]}\n" in text
    assert "\nboto3==" in text
    machine.run(repository, "check")
    git(repository.parent, "init --quiet --bare --initial-branch=main remote.git")
    git(repository, "init --quiet --initial-branch=main", "add --all", "commit --quiet -m begin")
    git(repository, "remote add origin ../remote.git", "push --quiet origin main")
    return repository


def write_traffic(repository: Path, file: Path) -> Path:
    """Write the records of sixty requests that the repository's catalog would have served."""
    catalog = Catalog.from_json(compile_catalog(repository / "routing.yaml").content)
    asked = planning_request("anthropic/claude-sonnet-5.5", 0)
    file.write_bytes(b"".join(line(record(catalog, asked, number)) for number in range(60)))
    return file


@contextmanager
def serving(machine: Machine, repository: Path) -> Iterator[LocalServer]:
    # ministack was installed before; test_package.py has the first start of a machine.
    lock = (ROOT / PARTS["environments"] / "ministack.txt").read_bytes()
    made = machine.home / "cache" / f"tollgate/ministack-{BEFORE}-{sha256(lock).hexdigest()[:12]}"
    made.parent.mkdir(parents=True)
    made.symlink_to(ministack_command().parents[1])
    only = {
        "PYTHONPATH": machine.variables["PYTHONPATH"],
        "XDG_CACHE_HOME": str(machine.home / "cache"),
    }
    with local_server(
        machine.home / "state", tollgate=machine.command, folder=repository, extra=only
    ) as server:
        yield server


def call_by_both_sdks(server: LocalServer) -> None:
    hello: list[Any] = [{"role": "user", "content": "Hello"}]
    with openai.OpenAI(base_url=server.base_url, api_key=server.key) as client:
        reply = client.chat.completions.create(model="test/echo", messages=hello)
        assert reply.choices[0].message.content == "Hello"
    base_url = server.base_url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=base_url, api_key=server.key) as messages:
        said = messages.messages.create(model="test/echo", max_tokens=50, messages=hello)
        assert said.content[0].text == "Hello"


def plan_a_pull_request(
    machine: Machine, repository: Path, server: LocalServer, traffic: Path
) -> None:
    """Push a branch; plan its merge as the action does, and with traffic that is paid for."""
    git(repository, "switch --quiet --create change")
    file = repository / "routing.yaml"
    row = "models: { anthropic/claude-sonnet-5.5: null }\n\n"
    text = file.read_text().replace("try: [anthropic/claude-sonnet-5.5, ", "try: [")
    file.write_text(text.replace("routes:\n", f"{row}routes:\n", 1))
    git(repository, "commit --quiet --all -m change", "push --quiet origin change")
    git(repository, "switch --quiet main")
    proposed = machine.home / "runner" / "proposed"
    git(machine.home, f"clone --quiet work/remote.git {proposed}")
    git(proposed, "merge --quiet --no-ff -m merge origin/change")
    variables = {
        "TOLLGATE": str(machine.command),
        "PYTHONPATH": machine.variables["PYTHONPATH"],
        "TOLLGATE_URL": server.base_url,
        "TOLLGATE_KEY": server.management_key,
    }
    planned = run_step("Plan", proposed, **variables)
    assert planned.returncode == 0, planned.stderr
    comment = (proposed.parent / "routing-plan.md").read_text()
    assert comment.startswith("<!-- tollgate-plan label=routing:breaking -->")
    assert "anthropic/claude-sonnet-5.5" in comment
    # `dev` served the simulator, which production leaves out.
    assert "Neither revision serves 2 requests (100.0 %)." in comment
    plan = ("plan", "origin/main..origin/change", "--traffic", str(traffic))
    paid = machine.run(proposed, *plan, status=2)
    assert "replay of 60 requests" in paid
    assert "model_not_found" in paid


def decide(repository: Path) -> None:
    """Replace Bedrock, which the emulator lacks, by the simulator, which needs no network."""
    file = repository / "routing.yaml"
    text = file.read_text()
    for bedrock, without in (
        ("tollgate:bedrock, tollgate:openai", "tollgate:openai, tollgate:simulator"),
        (", amazon/nova-pro", ""),
        ("amazon/nova-2-lite, ", ""),
    ):
        assert bedrock in text
        text = text.replace(bedrock, without)
    file.write_text(text)
    git(repository, "commit --quiet --all -m decide")


def deploy(
    machine: Machine,
    repository: Path,
    account: dict[str, str],
    answers: list[tuple[str, str]] | None = None,
) -> str:
    """Deploy on a terminal, and return what it shows."""
    kept = {it: os.environ[it] for it in os.environ if it.startswith(("PIP_", "SSL_", "HTTP"))}
    kept.setdefault("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
    deployed = on_terminal(
        [machine.command, "deploy"],
        {**account, **kept, "PYTHONPATH": machine.variables["PYTHONPATH"], "SAM": str(SAM)},
        [*(answers or ()), ("Deploy this changeset?", "y")],
        folder=repository,
        # Installing the wheels of the functions is silent.
        silence_max_s=900,
    )
    assert (deployed.status, deployed.unasked) == (0, ()), deployed.screen
    assert " is live" in deployed.screen
    template = (repository / ".aws-sam/source/infra/template.yaml").read_text()
    assert "secret:tollgate/openai>https://api.openai.com" in template
    assert "tollgate/voyage" not in template
    return deployed.screen


def assert_next_steps(screen: str) -> None:
    steps = screen.partition(" is live.")[2]
    assert steps.count("create-secret") == 2
    assert steps.index("create-secret") < steps.index("/api/console") < steps.index("first-key")


def make_keys(machine: Machine, repository: Path, account: dict[str, str]) -> str:
    """Create the stack's first key and with it a key for requests, which has credit."""
    first = machine.run(repository, "first-key", *STACK, **account).split()[-1]
    with serving_stack(machine.command, repository, account, machine.variables) as url:
        signed_in = {"TOLLGATE_URL": url, "TOLLGATE_KEY": first}
        key = machine.run(repository, "keys", "create", "me", **signed_in).split()[0]
        machine.run(repository, "credits", "add", "10", "--id", "first", **signed_in)
    return key


def examine(machine: Machine, repository: Path, account: dict[str, str], key: str) -> str:
    """Return the report of `tollgate doctor`, in which no check has failed."""
    with serving_stack(machine.command, repository, account, machine.variables) as url:
        checked = ("doctor", *STACK, "--url", url, "--model", "test/slow")
        report = machine.run(repository, *checked, **account, TOLLGATE_API_KEY=key)
    for passed in ("the gateway is ready", "the key is accepted", "stream: "):
        assert f"ok    {passed}" in report
    assert ", as routing.yaml" in report
    return report


def store_secrets(account: dict[str, str]) -> None:
    secrets = client(account, "secretsmanager")
    for name in ("tollgate/anthropic", "tollgate/openai"):
        secrets.create_secret(Name=name, SecretString="synthetic")


def upgrade(machine: Machine, repository: Path, traffic: Path) -> None:
    """Upgrade to the newest release, which prints its effects in dollars, and install it."""
    printed = machine.run(
        repository, "upgrade", "--traffic", str(traffic), "--repository", "acme/tollgate"
    )
    assert printed.startswith(f"tollgate-llm {BEFORE} → {VERSION}\n")
    assert f"Attested by acme/tollgate for the tag v{VERSION}." in printed
    assert "  - Retired" in printed
    assert "  + ApiRole allow dynamodb:BatchGetItem on CoreTable.Arn" in printed
    assert "(-50.0 %)" in printed
    assert re.search(r"^Spend \$0\.\d+ → \$0\.\d+ \(-\$0\.\d+, -50\.0 %\)", printed, re.M)
    assert (machine.home / "gh.txt").read_text().count(f"--source-ref refs/tags/v{VERSION}") == 2
    changed = git(repository, "diff --name-only").split()
    assert changed == ["requirements.txt", "routing.yaml"]
    assert f"/v{VERSION}/infra/schema/" in (repository / "routing.yaml").read_text()
    install_pinned(machine, repository)


def install_pinned(machine: Machine, repository: Path) -> None:
    """Install the wheels that requirements.txt pins, by their hashes."""
    text = (repository / "requirements.txt").read_text()
    pins = re.findall(r"^tollgate-llm\S* \\\n +--hash=\S+\n", text, re.M)
    assert len(pins) == 2
    file = machine.home / "pins.txt"
    file.write_text("".join(pins))
    machine.install("--require-hashes", "--requirement", str(file))


def granted(account: dict[str, str]) -> set[str]:
    """Return the release whose permissions the deployed stack has."""
    iam = client(account, "iam")
    policies = [
        json.dumps(iam.get_role_policy(RoleName=role["RoleName"], PolicyName=name))
        for role in iam.list_roles()["Roles"]
        for name in iam.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]
    ]
    assert policies
    return {BEFORE if any("PartiQLSelect" in it for it in policies) else VERSION}


def count_items(account: dict[str, str]) -> dict[str, int]:
    """Return the number of items in each table of the stack."""
    tables = client(account, "dynamodb")
    return {
        name: tables.scan(TableName=name, Select="COUNT")["Count"]
        for name in tables.list_tables()["TableNames"]
    }
