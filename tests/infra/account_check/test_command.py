"""The command: its questions, its table and its exit status."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import boto3
import pytest
from click.testing import CliRunner, Result

from infra.account_check import probes
from infra.account_check.__main__ import account_check
from infra.account_check.probes import PROBES
from infra.account_check.verdicts import print_verdicts
from tests.infra.account import running_account
from tests.infra.translation import ROOT, Stack
from tests.nightly import first

REGION: Final = "us-east-1"
KEY: Final = "sk-tg-synthetic"
OUTPUTS: Final = (
    "ApiUrl",
    "CoreTableName",
    "LedgerTableName",
    "GenerationsTableName",
    "ObjectsBucketName",
)
NOBODY: Final = "http://127.0.0.1:9/api/v1"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The samconfig.toml of a stage that was deployed."""
    path = tmp_path / "samconfig.toml"
    path.write_text(f'[prod.deploy.parameters]\nstack_name = "tg"\nregion = "{REGION}"\n')
    return path


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account with the stack, in which nothing answers and no function exists."""
    template = {
        "Resources": {
            name: {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": f"/{name}"}}
            for name in ("ChatFunction", "ChatLogs")
        },
        "Outputs": {name: {"Value": NOBODY} for name in OUTPUTS},
    }
    with running_account(tmp_path) as terminal:
        for name, value in terminal.items():
            if name.startswith("AWS_"):
                monkeypatch.setenv(name, value)
        formation = boto3.client("cloudformation", region_name=REGION)
        formation.create_stack(StackName="tg", TemplateBody=json.dumps(template))
        yield


def run(*arguments: str, key: str | None = KEY) -> Result:
    environment = {"TOLLGATE_API_KEY": key, "COLUMNS": "200"}
    return CliRunner(env=environment).invoke(account_check, arguments)


@pytest.mark.nightly
@pytest.mark.usefixtures("account")
def test_a_stack_that_does_not_answer_leaves_every_question_open(config: Path) -> None:
    result = run("prod", "--config", str(config), "--json")
    assert result.exit_code == 1, result.output
    verdicts = json.loads(result.stdout)
    assert [it["question"] for it in verdicts] == [question.name for question, _ in PROBES]
    assert {it["judgement"] for it in verdicts} == {"unanswered"}
    assert "Unreachable: 127.0.0.1:9 does not answer" in verdicts[0]["seen"]
    assert "less than 10 cents" in result.stderr
    # The stack of the trailers is gone again.
    stacks = boto3.client("cloudformation", region_name=REGION).describe_stacks()["Stacks"]
    assert [it["StackName"] for it in stacks] == ["tg"]


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("arguments", "key", "complaint"),
    first(
        1,
        [
            (["prod"], None, "Missing option '--key'"),
            (["staging"], KEY, "samconfig.toml has no stage 'staging'"),
            (["prod", "--region", "eu-west-1"], KEY, "stack tg"),
        ],
    ),
)
def test_what_is_not_there_is_one_sentence(
    config: Path, arguments: list[str], key: str | None, complaint: str
) -> None:
    result = run(*arguments, "--config", str(config), key=key)
    assert result.exit_code in (1, 2)
    assert complaint in result.stderr
    assert "Traceback" not in result.output


def test_the_table_says_what_to_do_only_where_something_is_otherwise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_verdicts(
        [
            probes.TIMING.judge("4 events", as_expected=True),
            probes.THAW.judge("a broken answer", as_expected=False),
            probes.SECRET.leave("all secrets exist"),
        ],
        "auto",
    )
    assert capsys.readouterr().out.splitlines() == [
        "question\tverdict\tseen\tdo",
        "chunk timing\tas expected\t4 events\t",
        f"sockets after a thaw\totherwise\ta broken answer\t{probes.THAW.otherwise}",
        "missing secret\tunanswered\tall secrets exist\t",
    ]


def test_the_template_has_the_function_and_the_logs_that_are_probed(stack: Stack) -> None:
    assert "ChatFunction" in stack.resources("AWS::Lambda::Function")
    assert "ChatLogs" in stack.resources("AWS::Logs::LogGroup")


def test_the_page_has_each_question_with_what_is_expected_and_what_to_do() -> None:
    page = (ROOT / "infra" / "account_check" / "README.md").read_text()
    table = [line for line in page.splitlines() if line.startswith("| ")][1:]
    assert table == [f"| {it.name} | {it.expected} | {it.otherwise} |" for it, _ in PROBES]
