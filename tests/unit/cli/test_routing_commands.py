"""`tollgate check` and `tollgate compile`, as they are typed."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tollgate.cli.main import main
from tollgate.cli.routing.permissions import (
    BATCHES_BEGIN,
    BATCHES_END,
    BEGIN,
    END,
    HOSTS_BEGIN,
    HOSTS_END,
    OUTPUT_BEGIN,
    OUTPUT_END,
    ROLE_BEGIN,
    ROLE_END,
    VARIABLES_BEGIN,
    VARIABLES_END,
    list_missing,
    write_permissions,
)
from tollgate.routing.file.load import load
from tollgate.routing.file.permissions import Permissions
from tollgate.routing.planning.catalog import Catalog

ROOT = Path(__file__).parents[3]
FILE = ROOT / "routing.yaml"
BAD = ROOT / "tests" / "unit" / "routing" / "bad"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_check_summarizes_a_good_file_in_one_line_on_demand() -> None:
    result = run("check", "--warnings", FILE)
    held = load(FILE)
    assert result.exit_code == 0
    assert (
        f"is fine: {len(held.providers)} providers, {len(held.models)} models, "
        f"{len(held.aliases)} aliases, {len(held.routes)} routes"
    ) in result.output.splitlines()[-1]


DATED = """\
version: 1
providers:
  simulator: { codec: openai_chat, transport: simulator }
aliases:
  old: { to: acme/old, sunset: 2020-01-01 }
models:
  acme/old:
    name: Old
    context: 1000
    max_output: 100
    retires: 2020-01-01
    endpoints:
      - provider: simulator
        upstream: echo
        price: { input: 1, output: 2, source: made up, checked: 2019-01-01 }
"""


def test_check_lists_what_only_the_calendar_warns_of_on_demand(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(DATED)
    assert run("check", file).output == ""
    codes = ["R070", "R072", "R071"]
    listed = run("check", "--warnings", file).output
    assert re.findall(r"warning\[(R\d+)\]", listed) == codes
    assert ", 3 warnings; catalog " in listed.splitlines()[-1]
    annotated = run("check", "--format", "github", file).output
    assert re.findall(r"title=(R\d+)", annotated) == codes
    found = json.loads(run("check", "--format", "json", file).output)["problems"]
    assert [problem["code"] for problem in found] == codes


def test_check_of_the_shipped_file_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = run("check")
    assert (result.exit_code, result.output) == (0, "")


def test_check_counts_what_only_the_calendar_warns_of_after_other_warnings(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    later = "        overrides: [{ when: { from: 2099-01-01 }, price: { output: 9 } }]\n"
    promise = "{ description: Now, try: [acme/old], promise: { output_price_max: 5 } }"
    file.write_text(f"{DATED}{later}routes: {{ kept: {promise} }}\n")
    shown, *_, last = run("check", file).output.splitlines()
    assert "warning[R062]" in shown
    assert "4 warnings (3 of near or past days, which --warnings lists); catalog " in last


def test_check_of_a_bad_file_prints_all_errors_and_exits_with_one() -> None:
    result = run("check", BAD / "several.yaml")
    assert result.exit_code == 1
    assert result.output.count("error[") == 5
    assert "5 errors" in result.output


def test_check_annotates_for_github_with_what_its_syntax_escapes() -> None:
    result = run("check", "--format", "github", BAD / "R020_provider.yaml")
    assert result.exit_code == 1
    assert "::error file=" in result.output
    assert 'line=10,col=21,title=R020::provider "opnai" is not defined' in result.output


def test_check_writes_json_for_programs() -> None:
    bad = json.loads(run("check", "--format", "json", BAD / "R020_provider.yaml").output)
    good = json.loads(run("check", "--format", "json", FILE).output)
    assert bad["catalog_sha"] is None
    assert (bad["problems"][0]["code"], bad["problems"][0]["line"]) == ("R020", 10)
    assert len(good["catalog_sha"]) == 64


def test_check_of_a_file_that_is_not_there_says_so() -> None:
    result = run("check", "nowhere.yaml")
    assert result.exit_code == 1
    assert "nowhere.yaml:1:1: error[R001] cannot be read: No such file or directory" in (
        result.output
    )


@pytest.mark.parametrize("style", ["text", "github", "json"])
def test_no_format_repeats_a_pasted_key(style: str) -> None:
    output = run("check", "--format", style, BAD / "R040_literal_key.yaml").output
    assert output
    assert [part for part in ("hunter2", "0123456789", "horse battery") if part in output] == []


def test_compile_writes_what_functions_read_without_the_simulator(tmp_path: Path) -> None:
    output = tmp_path / "routing.json"
    result = run("compile", FILE, "-o", output, "--production")
    catalog = Catalog.from_json(output.read_bytes())
    assert result.exit_code == 0
    assert catalog.sha in result.output
    assert "test/echo" not in catalog.models
    assert list(tmp_path.iterdir()) == [output]


def test_compile_is_for_production_unless_development_is_asked_for(tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    run("compile", FILE, "-o", one)
    run("compile", FILE, "-o", other, "--dev")
    assert "test/echo" not in Catalog.from_json(one.read_bytes()).models
    assert "test/echo" in Catalog.from_json(other.read_bytes()).models


def test_compile_writes_nothing_when_there_are_errors(tmp_path: Path) -> None:
    output = tmp_path / "routing.json"
    result = run("compile", BAD / "several.yaml", "-o", output)
    assert result.exit_code == 1
    assert "error[R020]" in result.output
    assert not output.exists()


def test_compile_says_which_file_it_cannot_write(tmp_path: Path) -> None:
    result = run("compile", FILE, "--output", tmp_path / "nowhere" / "routing.json")
    assert result.exit_code == 1
    assert "routing.json: No such file or directory" in result.output


def test_help_lists_the_commands_and_imports_none() -> None:
    script = (
        "import sys; from tollgate.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "assert not {'yaml', 'pydantic', 'boto3', 'uvicorn'} & set(sys.modules)"
    )
    shown = imported(script)
    assert "check" in shown
    assert "compile" in shown


def test_a_function_that_plans_imports_no_yaml_and_no_command_line() -> None:
    imported(
        "import sys, tollgate.routing.planning.catalog, tollgate.routing.planning.plan\n"
        "assert not {'yaml', 'click', 'tollgate.routing.file.load'} & set(sys.modules)"
    )


def imported(script: str) -> str:
    """What a fresh interpreter prints; the assertions of the script hold in it."""
    environment = {"PYTHONPATH": str(ROOT / "functions")}
    finished = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


TEMPLATE = (
    "    Metadata:\n      # {hosts_begin}\n      KeyHosts: []\n      # {hosts_end}\n"
    "    Policies:\n      # {begin}\n      - Effect: Deny\n      # {end}\n"
    "    Batches:\n      # {batches_begin}\n      # {batches_end}\n"
    "  # {role_begin}\n  # {role_end}\n  # {variables_begin}\n  # {variables_end}\n"
    "  # {output_begin}\n  # {output_end}\n"
    "    After: kept\n"
)


@pytest.fixture
def template(tmp_path: Path) -> Path:
    file = tmp_path / "template.yaml"
    names = {
        "begin": BEGIN,
        "end": END,
        "hosts_begin": HOSTS_BEGIN,
        "hosts_end": HOSTS_END,
        "batches_begin": BATCHES_BEGIN,
        "batches_end": BATCHES_END,
        "role_begin": ROLE_BEGIN,
        "role_end": ROLE_END,
        "variables_begin": VARIABLES_BEGIN,
        "variables_end": VARIABLES_END,
        "output_begin": OUTPUT_BEGIN,
        "output_end": OUTPUT_END,
    }
    marks = {name: mark.removeprefix("# ") for name, mark in names.items()}
    file.write_text(TEMPLATE.format(**marks))
    return file


def test_permissions_are_written_between_the_marks_and_then_are_right(template: Path) -> None:
    assert run("permissions", FILE, "--template", template).exit_code == 0
    written = template.read_text()
    assert "Deny" not in written
    assert "    Policies:\n      # routing.yaml begins" in written
    assert written.startswith("    Metadata:\n      # hosts of routing.yaml begin")
    assert "        - secret:tollgate/openai>https://api.openai.com\n" in written
    assert "        - variable:OPENAI_API_KEY>https://api.openai.com\n" in written
    assert "      # routing.yaml ends\n    Batches:\n" in written
    assert written.endswith("  # output of routing.yaml ends\n    After: kept\n")
    assert ":secret:tollgate/openai-??????\n" in written
    again = run("permissions", FILE, "--template", template, "--check")
    assert again.exit_code == 0
    assert "allows exactly what" in again.output


@pytest.mark.parametrize(
    "pinned",
    [
        "secret:tollgate/openai>https://api.openai.com.evil.example",
        "secret:tollgate/openai>https://api.openai.com:8443",
        "secret:tollgate/openai>http://api.openai.com",
        "secret:tollgate/openai-2>https://api.openai.com",
        "secret:mine/secret:tollgate/openai>https://api.openai.com",
    ],
)
def test_c93_a_pair_is_known_by_its_whole_pin(pinned: str) -> None:
    pin = "secret:tollgate/openai>https://api.openai.com"
    needed = Permissions(models=(), secrets=(), key_hosts=(pin,))
    assert list_missing(f"KeyHosts:\n  - {pinned}\n", needed) == [pin]
    assert list_missing(f"KeyHosts:\n  - {pin}\n", needed) == []
    assert list_missing(f'{{"KeyHosts": ["{pin}"]}}', needed) == []


def test_permissions_that_are_not_right_are_refused_and_left_alone(template: Path) -> None:
    before = template.read_text()
    result = run("permissions", FILE, "--template", template, "--check")
    assert result.exit_code == 1
    assert "does not allow exactly what" in result.output
    assert template.read_text() == before


def test_permissions_need_the_marks_and_a_good_file(template: Path) -> None:
    assert run("permissions", BAD / "several.yaml", "--template", template).exit_code == 1
    template.write_text("Resources: {}\n")
    result = run("permissions", FILE, "--template", template)
    assert result.exit_code == 1
    assert "has no lines" in result.output


def test_each_action_is_granted_by_one_statement(template: Path) -> None:
    things = ("arn:aws:bedrock:::thing",)
    needed = Permissions(
        models=things,
        whole_models=things,
        counted_models=things,
        guardrails=things,
        sagemaker_endpoints=things,
        secrets=things,
        key_hosts=(),
    )
    actions = re.findall(r"Action: (\S+)", write_permissions(template.read_text(), needed))
    assert len(actions) == len(set(actions)) == 6


def test_the_projects_own_template_allows_what_its_routing_file_names() -> None:
    template = ROOT / "infra" / "template.yaml"
    assert run("permissions", FILE, "--template", template, "--check").exit_code == 0
