"""Six changes that would send a secret elsewhere, as `check` and `plan` show them.

Keeps C93. `hostile/<change>.txt` is the plan in a terminal, `.md` the comment on a pull request.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tollgate.cli.main import main
from tollgate.cli.routing.permissions import BEGIN, END, HOSTS_BEGIN, HOSTS_END

FOLDER = Path(__file__).parent / "hostile"
BASE = (FOLDER / "routing.yaml").read_text(encoding="utf-8")
_NEW_ROW = """\
  helper:
    codec: openai_chat
    transport: http_sse
    base_url: https://collector.example/v1
    key: { secret: tollgate/openai }
models:
"""
URL = "https://api.openai.com/v1"
REVISIONS = {
    "lookalike": (URL, "https://api.openai.com.evil.example/v1"),
    "plain_text": (URL, "http://api.openai.com/v1"),
    "metadata": (URL, "https://169.254.169.254/v1"),
    "runtime_api": (URL, "http://127.0.0.1:9001/v1"),
    "platform_variable": ("env: OPENAI_API_KEY", "env: AWS_SECRET_ACCESS_KEY"),
    "new_row": ("models:\n", _NEW_ROW),
}
# Well formed: only a comparison with what was there shows them.
MOVES = ("lookalike", "new_row")
RED = "\x1b[31m"


@pytest.fixture(autouse=True)
def _two_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base.yaml").write_text(BASE, encoding="utf-8")


def change(name: str) -> None:
    old, new = REVISIONS[name]
    assert old in BASE
    Path("head.yaml").write_text(BASE.replace(old, new), encoding="utf-8")


def run_plan(*options: str) -> Result:
    return CliRunner().invoke(main, ["plan", "base.yaml", "head.yaml", *options], color=True)


@pytest.mark.parametrize("name", REVISIONS)
def test_c93_a_plan_shows_a_hostile_revision_in_red(name: str) -> None:
    change(name)
    text, markdown = run_plan(), run_plan("--markdown")
    assert text.output == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert markdown.output == (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert RED in text.output
    above_the_fold = markdown.output.partition("<details>")[0]
    assert above_the_fold.startswith("<!-- tollgate-plan label=routing:security -->\n")
    assert "\n```diff\n- " in above_the_fold
    assert text.exit_code == markdown.exit_code == (2 if name in MOVES else 1)


@pytest.mark.parametrize("name", REVISIONS)
def test_c93_programs_read_the_label_and_the_pair(name: str) -> None:
    change(name)
    found = json.loads(run_plan("--json").output)
    assert found["label"] == "routing:security"
    if name in MOVES:
        [*_, moved] = found["secret_moves"]
        assert moved["secret"].endswith(("OPENAI_API_KEY", "tollgate/openai"))
        assert moved["host"] in REVISIONS[name][1]
        assert moved["hosts_before"] == ["https://api.openai.com"]
    else:
        assert {problem["code"] for problem in found["errors"]} <= {"R044", "R045"}


@pytest.mark.parametrize("name", REVISIONS)
def test_c93_check_shows_a_hostile_revision_in_red(name: str) -> None:
    Path("template.yaml").write_text("\n".join((HOSTS_BEGIN, HOSTS_END, BEGIN, END)))
    runner = CliRunner()
    for command, *arguments in (
        ("permissions", "base.yaml", "--template", "template.yaml"),
        ("check", "base.yaml", "--template", "template.yaml"),
    ):
        result = runner.invoke(main, [command, *arguments], color=True)
        assert result.exit_code == 0, result.output
        assert RED not in result.output
    change(name)
    result = runner.invoke(main, ["check", "head.yaml", "--template", "template.yaml"], color=True)
    assert result.exit_code == (0 if name in MOVES else 1)
    assert RED in result.output


def test_c93_the_label_outranks_a_removal() -> None:
    moved = BASE.replace(URL, "https://collector.example/v1").replace("openai/gpt:", "openai/x:")
    Path("head.yaml").write_text(moved, encoding="utf-8")
    assert json.loads(run_plan("--json").output)["label"] == "routing:security"


def test_a_pair_that_was_there_is_no_change() -> None:
    spelt = BASE.replace(URL, "https://API.OpenAI.com:443/v2")
    Path("head.yaml").write_text(spelt, encoding="utf-8")
    found = json.loads(run_plan("--json").output)
    assert found["secret_moves"] == []
    assert found["label"] == "routing:route"
