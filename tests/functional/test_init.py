"""`tollgate init`: a gateway's repository, new or converted from a fork. Keeps C97."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.local_server import ROOT
from tollgate import DISTRIBUTION
from tollgate.cli.main import main
from tollgate.cli.repository.init import make_repository
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.load import inspect


def made_in(folder: Path, fork: Path | None = None) -> list[str]:
    return make_repository(
        folder, "my-gateway", source="acme/tollgate", requirements="tollgate==1.0.0\n", fork=fork
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made_in(tmp_path)
    return tmp_path


def files(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


def tollgate(*arguments: str | Path, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, list(map(str, arguments)))


def test_c97_a_repository_has_at_most_ten_files_and_a_page_of_routing(repository: Path) -> None:
    assert files(repository) == {
        ".github/workflows/check.yml",
        ".github/workflows/nightly.yml",
        ".github/workflows/routing.yml",
        ".gitignore",
        "README.md",
        "catalog.yaml",
        "requirements.txt",
        "routing.yaml",
        "samconfig.toml",
    }
    assert len((repository / "routing.yaml").read_text().splitlines()) < 60
    for path in files(repository):
        assert not re.findall(r"@[A-Z0-9]+@", (repository / path).read_text()), path
    inspection = inspect(repository / "routing.yaml", dev=True)
    assert inspection.errors == ()
    assert inspection.production is not None
    assert inspection.routing is not None
    assert "test/echo" in inspection.routing.models.keys() - inspection.production.models.keys()


def test_c97_check_and_explain_work_in_the_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    checked = tollgate("check")
    assert (checked.exit_code, checked.output) == (0, "")
    explained = tollgate("explain", "smart")
    assert explained.exit_code == 0, explained.output
    assert "anthropic/claude-sonnet-5.5" in explained.output


def test_the_workflows_use_the_action_of_this_version(repository: Path) -> None:
    action = f"acme/tollgate/.github/actions/gateway@v{version(DISTRIBUTION)}"
    inputs: set[str] = set()
    for file in sorted((repository / ".github/workflows").iterdir()):
        text = file.read_text()
        workflow: dict[str, Any] = yaml.load(text, Loader=yaml.BaseLoader)
        assert workflow["permissions"] == {}
        for job in workflow["jobs"].values():
            checkout, step = job["steps"]
            assert checkout["with"]["persist-credentials"] == "false"
            # A job without secrets runs what a pull request pins, and no other job does.
            assert ("environment" in job) == ("pull_request" not in workflow["on"])
            assert "environment" in job or "secrets." not in text
            assert step["uses"] == action
            inputs |= step["with"].keys()
            if step["with"]["run"] == "${{ matrix.run }}":  # refresh, upgrade
                assert step["with"]["source"] == "acme/tollgate"
    assert inputs == {"run", "source", "key-variables", "url", "key", "publish-role", "region"}


def test_its_stages_are_those_of_this_repository_without_a_template(repository: Path) -> None:
    ours = tomllib.loads((ROOT / "samconfig.toml").read_text())
    theirs = tomllib.loads((repository / "samconfig.toml").read_text())
    for stage in ("default", "prod"):
        assert theirs[stage] == {each: ours[stage][each] for each in ("deploy", "delete")}


def test_c97_an_include_that_the_catalog_lacks_is_refused_before_a_deploy_asks(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    file = repository / "routing.yaml"
    file.write_text(file.read_text().replace("tollgate:bedrock", "tollgate:bedrok"))
    before = {path: (repository / path).read_bytes() for path in files(repository)}
    refused = tollgate("deploy", "--region", "eu-west-1")
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: routing.yaml must not be used.\n")
    assert refused.output.count("error[R") == 1
    assert "catalog.yaml has no provider bedrok: did you mean tollgate:bedrock?" in refused.output
    assert {path: (repository / path).read_bytes() for path in files(repository)} == before


@pytest.mark.parametrize("options", [(), ("--from-fork", ROOT)])
def test_c97_a_folder_that_is_not_empty_stays_as_it_is(
    tmp_path: Path, options: tuple[str | Path, ...]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    refused = tollgate("init", tmp_path, *options)
    assert refused.exit_code == 1
    assert refused.output == f"Error: {tmp_path} is not empty; nothing is written\n"
    assert files(tmp_path) == {"notes.txt"}


def test_c97_a_source_that_is_no_repository_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "my-gateway"
    refused = tollgate("init", folder, "--source", "https://github.com/acme/tollgate")
    assert refused.exit_code == 1
    assert refused.output.endswith("/acme/tollgate is not OWNER/NAME; nothing is written\n")
    assert not folder.exists()


def test_c97_a_version_without_hashes_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "my-gateway"
    refused = tollgate("init", folder, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert refused.exit_code == 1
    assert "cannot be fetched: " in refused.output
    assert "for wheels in a folder, set PIP_FIND_LINKS to the folder" in refused.output
    assert refused.output.endswith("; nothing is written\n")
    assert not folder.exists()


MINE = "{ codec: openai_chat, transport: http_sse, base_url: https://mine.example/v1 }"
FORKED = {
    # A negotiated price, a further region, an own provider with its model, and a route.
    "routing.yaml": [
        ("          input: 3.00\n", "          input: 2.50\n"),
        (
            "    base_url: https://api.openai.com/v1\n",
            "    base_url: https://eu.api.openai.com/v1\n",
        ),
        (
            "providers:\n",
            f"providers:\n  mine: {MINE}\n",
        ),
        (
            "routes:\n",
            "routes:\n  own: { description: Our own, try: [openai/gpt-5.2, openai/gpt-5-mini] }\n",
        ),
    ],
    # Retired for us: its model has no endpoint elsewhere.
    "infra/catalog/jinaai.yaml": [("models:\n", "models: {}\nremoved:\n")],
}


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    folder = tmp_path / "fork"
    for path in ("routing.yaml", "samconfig.toml", "infra/simulator.yaml"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text((ROOT / path).read_text())
    (folder / "infra/catalog").mkdir()
    for file in (ROOT / "infra/catalog").glob("*.yaml"):
        (folder / "infra/catalog" / file.name).write_text(file.read_text())
    (folder / "sign-in.json").write_text("{}")
    return folder


def test_c97_a_fork_becomes_a_repository_with_the_same_catalog(fork: Path, tmp_path: Path) -> None:
    for path, edits in FORKED.items():
        text = (fork / path).read_text()
        for old, new in edits:
            assert old in text, old
            text = text.replace(old, new, 1)
        (fork / path).write_text(text.partition("removed:")[0])
    made = tmp_path / "made"
    made.mkdir()
    notes = made_in(made, fork)
    assert compile_catalog(made / "routing.yaml").sha == compile_catalog(fork / "routing.yaml").sha
    assert len(files(made)) <= 10
    own = yaml.safe_load((made / "routing.yaml").read_text())
    assert own["providers"]["openai"] == {"base_url": "https://eu.api.openai.com/v1"}
    assert own["providers"].keys() == {"mine", "openai"}
    assert sum(model is None for model in own["models"].values()) == 1
    assert len(own["models"]) == 2
    assert "own" in own["routes"]
    assert any("providers: mine, openai" in note for note in notes)


def test_c97_an_unchanged_fork_has_no_rows_of_its_own(fork: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    made_in(made, fork)
    own = yaml.safe_load((made / "routing.yaml").read_text())
    assert "models" not in own
    assert "providers" not in own
    assert (made / "sign-in.json").read_text() == "{}"
    assert "template_file" not in (made / "samconfig.toml").read_text()
