"""`make deploy` on a pseudo-terminal: real SAM CLI, real template, an account on loopback.

The functions' source stands in for their build, which SAM uploads alike. Keeps C54.
"""

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.infra.account import SAM, deploy_command, running_account
from tests.infra.terminal import on_terminal
from tests.infra.translation import ROOT
from tests.ministack import ministack_command

YES = ("Deploy this changeset? [y/N]", "y")
NO = ("Deploy this changeset? [y/N]", "n")


@pytest.fixture(scope="module")
def signed_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    if not SAM.exists() or ministack_command() is None:
        pytest.skip("the SAM CLI or ministack is not installed: run `make test`")
    with running_account(tmp_path_factory.mktemp("account")) as environment:
        yield environment


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """samconfig.toml as it ships, with copies of template and functions in place of the build.

    A copy has no bytecode, which commands write beside the source while the test runs.
    """
    bytecode = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "functions", tmp_path / "functions", ignore=bytecode)
    copied = tmp_path / "infra" / "template.yaml"
    copied.parent.mkdir()
    shutil.copy(ROOT / "infra" / "template.yaml", copied)
    template = f'template_file = "{copied}"'
    text = (ROOT / "samconfig.toml").read_text()
    for stage in ("default", "prod"):
        header = f"[{stage}.deploy.parameters]\n"
        text = text.replace(header, f"{header}{template}\n")
    file = tmp_path / "samconfig.toml"
    file.write_text(text)
    return file


def kept(config: Path, command: str = "deploy") -> dict[str, str]:
    parameters: dict[str, str] = tomllib.loads(config.read_text())["default"][command]["parameters"]
    return parameters


def client(signed_in: dict[str, str], service: str) -> Any:
    return boto3.client(
        service,
        "us-east-1",
        endpoint_url=signed_in["AWS_ENDPOINT_URL"],
        aws_access_key_id="synthetic",
        aws_secret_access_key="synthetic",
    )


def protections(signed_in: dict[str, str]) -> list[bool]:
    """Return of each table whether it is protected against deletion."""
    tables = client(signed_in, "dynamodb")
    return [
        # The emulator keeps the template's text, where DynamoDB has a boolean.
        str(tables.describe_table(TableName=name)["Table"]["DeletionProtectionEnabled"]) == "true"
        for name in tables.list_tables()["TableNames"]
    ]


@pytest.mark.nightly
def test_c54_the_first_deploy_a_second_a_changed_parameter_and_the_teardown(
    signed_in: dict[str, str], config: Path
) -> None:
    refused = on_terminal(
        deploy_command(config),
        signed_in,
        [
            ("AWS region [us-east-1]:", "nowhere"),
            ("AWS region", ""),
            ("E-mail", "me@example.com"),
            NO,
        ],
    )
    assert (refused.status, refused.unasked) == (1, ())
    assert "Deploying stack tollgate to us-east-1 as arn:aws:" in refused.screen
    assert kept(config)["parameter_overrides"] == "AlarmEmail=me@example.com"
    assert kept(config)["region"] == kept(config, "delete")["region"] == "us-east-1"
    assert "nothing was deployed, and nothing published" in refused.screen

    first = on_terminal(deploy_command(config), signed_in, [YES])
    assert (first.status, first.unasked) == (0, ()), first.screen
    assert "Successfully created/updated stack - tollgate in us-east-1" in first.screen
    assert " is live." in first.screen
    assert "/api/console" in first.screen
    assert "first-key --stack tollgate --region us-east-1" in first.screen
    assert "create-secret --region us-east-1 --name tollgate/openai" in first.screen
    assert '"TableDeletionProtection": "false"' in first.screen
    assert "Protecting the tables of tollgate against deletion" in first.screen
    assert protections(signed_in) == [True, True, True]
    for question in ("has no authentication", "Parameter AlertWebhookUrl", "Save arguments"):
        assert question not in first.screen

    # Every deployment deploys the API again (decision 1), and nothing else without a change.
    second = on_terminal(deploy_command(config), signed_in, [YES])
    assert (second.status, second.unasked) == (0, ()), second.screen
    changes = second.screen.partition(YES[0])[0]
    assert "AWS::ApiGateway::Deployment" in changes
    for unchanged in ("AWS::Lambda", "AWS::DynamoDB", "AWS::IAM"):
        assert unchanged not in changes
    assert " is live already." in second.screen
    assert "Protecting" not in second.screen

    config.write_text(config.read_text().replace("example.com", "example.com LogRetentionDays=7"))
    changed = on_terminal(deploy_command(config), signed_in, [YES])
    assert (changed.status, changed.unasked) == (0, ()), changed.screen
    groups = client(signed_in, "logs").describe_log_groups()["logGroups"]
    assert {it.get("retentionInDays") for it in groups} == {7}
    assert protections(signed_in) == [True, True, True]

    removed = on_terminal([SAM, "delete", "--config-file", config, "--no-prompts"], signed_in)
    assert removed.status == 0, removed.screen
    assert "Deleted successfully" in removed.screen
    assert protections(signed_in) == [True, True, True]


def test_without_credentials_one_sentence_comes_before_any_question(
    signed_in: dict[str, str], config: Path
) -> None:
    environment = {
        name: value for name, value in signed_in.items() if not name.startswith("AWS_ACCESS")
    }
    environment.pop("AWS_SECRET_ACCESS_KEY")
    shown = on_terminal(deploy_command(config), environment)
    assert shown.status == 1
    assert shown.screen.strip() == (
        "Error: there are no AWS credentials here: set them with `aws configure` or AWS_PROFILE"
    )
    assert "region" not in kept(config)
