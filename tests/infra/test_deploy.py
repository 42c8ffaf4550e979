"""`make deploy` without a terminal, with stand-ins for SAM: its commands, and its next steps.

Keeps C54.
"""

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import boto3
import click
import pytest
from moto import mock_aws

from tests.infra.account import deploy_command
from tests.infra.translation import ROOT
from tests.moto_server import running_moto
from tests.nightly import first
from tollgate.cli.main import main
from tollgate.cli.stack.aws_account import AwsAccount
from tollgate.cli.stack.stages import InvalidAnswer, keep_answers, parse_email, read_stage
from tollgate.web.keys.key_shapes import NewKeyBody
from tollgate.web.money.credit_routes import GrantBody

SIGNED_IN = {"AWS_ACCESS_KEY_ID": "synthetic", "AWS_SECRET_ACCESS_KEY": "synthetic"}
STAND_IN = '#!/bin/sh\necho "$@" >>"{seen}"\n{make}exit {status}\n'
OUTPUTS = (
    "ApiUrl",
    "CoreTableName",
    "LedgerTableName",
    "GenerationsTableName",
    "ObjectsBucketName",
)
URL = "https://abc.execute-api.eu-west-1.amazonaws.com/api/v1"
MADE: dict[str, Any] = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
    "Outputs": {name: {"Value": URL} for name in OUTPUTS},
}
# As SAM does, the stand-in makes the stack that its arguments name; moto refuses one that exists.
MAKE = """\
while test "$1" != --stack-name; do shift; done
scope=a/20261127/eu-west-1/cloudformation/aws4_request
curl --silent --output /dev/null "$AWS_ENDPOINT_URL" --data Action=CreateStack \\
  --header "Authorization: AWS4-HMAC-SHA256 Credential=$scope" \\
  --data-urlencode "StackName=$2" --data-urlencode 'TemplateBody={body}'
"""


@contextmanager
def empty_account() -> Iterator[str]:
    """Run an account without stacks, and yield its URL."""
    with running_moto() as url:
        try:
            yield url
        finally:
            urlopen(Request(f"{url}/moto-api/reset", method="POST")).close()


def deploy(
    folder: Path,
    stage: str,
    *,
    sam_status: int = 0,
    publish_status: int = 0,
) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """The arguments of SAM and of the command line, and the result of the deploy itself.

    Nobody sits at the terminal, and the account is empty.
    """
    with empty_account() as url:
        return deploy_to(url, folder, stage, sam_status=sam_status, publish_status=publish_status)


def deploy_to(
    url: str,
    folder: Path,
    stage: str,
    *,
    sam_status: int = 0,
    publish_status: int = 0,
    **environment: str,
) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    seen = folder / "seen"
    for name, status in {"sam": sam_status, "tollgate": publish_status}.items():
        stand_in = folder / name
        make = MAKE.format(body=json.dumps(MADE)) if name == "sam" and not status else ""
        stand_in.write_text(STAND_IN.format(seen=seen, status=status, make=make))
        stand_in.chmod(0o755)
    stand_ins = {"SAM": str(folder / "sam"), "TOLLGATE": str(folder / "tollgate")}
    signed_in = {**SIGNED_IN, "AWS_ENDPOINT_URL": url, "AWS_REGION": "eu-west-1"}
    result = deployed(folder, stage, **signed_in, **stand_ins, **environment)
    return seen.read_text().splitlines(), result


def deployed(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The result of `tollgate deploy` without a terminal and without credentials."""
    config = folder / "samconfig.toml"
    if not config.exists():
        config.write_text((ROOT / "samconfig.toml").read_text())
    return subprocess.run(
        deploy_command(config, *arguments),
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}",
            "AWS_EC2_METADATA_DISABLED": "true",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def sam_deploy(folder: Path, stage: str, stack: str) -> str:
    config = folder / "samconfig.toml"
    return (
        f"deploy --config-file {config} --config-env {stage}"
        f" --stack-name {stack} --region eu-west-1"
        " --parameter-overrides TableDeletionProtection=false"
    )


@pytest.mark.parametrize(
    ("stage", "stack"), first(1, [("prod", "tollgate-prod"), ("default", "tollgate")])
)
def test_c54_a_stage_is_deployed_then_published_and_nobody_is_asked_without_a_terminal(
    tmp_path: Path, stage: str, stack: str
) -> None:
    called, result = deploy(tmp_path, stage)
    assert called == [
        sam_deploy(tmp_path, stage, stack),
        f"publish --stack {stack} --region eu-west-1",
    ]
    assert f"first-key --stack {stack} --region eu-west-1\n" in result.stdout
    assert result.stdout.endswith(f"tollgate doctor --stack {stack} --region eu-west-1\n")
    assert "https://abc.execute-api.eu-west-1.amazonaws.com/api/console\n" in result.stdout


def test_c97_only_secrets_that_a_route_needs_have_a_command_and_the_key_comes_last(
    tmp_path: Path,
) -> None:
    _, result = deploy(tmp_path, "default")
    secrets = re.findall(r"create-secret .*--name (\S+)", result.stdout)
    assert "tollgate/openai" in secrets
    assert "tollgate/voyage" not in secrets
    assert "tollgate/voyage" in result.stdout
    assert result.stdout.index(secrets[-1]) < result.stdout.index("first-key")


@pytest.mark.parametrize(
    ("stated", "overrides"),
    first(
        1,
        [
            ('"A=1 B=2"', " --parameter-overrides A=1 B=2 TableDeletionProtection=false"),
            ('["A=1", "B=2"]', " --parameter-overrides A=1 B=2 TableDeletionProtection=false"),
            ('"A=1 TableDeletionProtection=true"', ""),
            (
                '{A = 1, B = ["x", "y z"]}',
                ' --parameter-overrides A="1" B="x,y z" TableDeletionProtection=false',
            ),
            (
                '["A=1", {"$include" = "file://a.yaml", B = "a \\"b\\""}]',
                (
                    ' --parameter-overrides A=1 file://a.yaml B="a \\"b\\""'
                    " TableDeletionProtection=false"
                ),
            ),
            ("{TableDeletionProtection = true}", ""),
        ],
    ),
)
def test_a_first_deploy_keeps_the_parameters_of_its_stage(
    tmp_path: Path, stated: str, overrides: str
) -> None:
    header = "[default.deploy.parameters]\n"
    text = (ROOT / "samconfig.toml").read_text()
    stating = text.replace(header, f"{header}parameter_overrides = {stated}\n")
    (tmp_path / "samconfig.toml").write_text(stating)
    called, _ = deploy(tmp_path, "default")
    assert called[0].partition(" --region eu-west-1")[2] == overrides


UNPROTECTED: dict[str, Any] = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Parameters": {"TableDeletionProtection": {"Type": "String", "Default": "false"}},
    "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
    "Outputs": MADE["Outputs"],
}


@pytest.mark.parametrize(("stated", "protection"), first(1, [(False, "true"), (True, "false")]))
def test_tables_that_an_interrupted_deploy_left_unprotected_are_protected_by_the_next(
    tmp_path: Path, stated: bool, protection: str
) -> None:
    if stated:
        header = "[default.deploy.parameters]\n"
        kept = f'{header}parameter_overrides = "TableDeletionProtection=false"\n'
        text = (ROOT / "samconfig.toml").read_text().replace(header, kept)
        (tmp_path / "samconfig.toml").write_text(text)
    with empty_account() as url:
        account = boto3.client(
            "cloudformation",
            "eu-west-1",
            endpoint_url=url,
            aws_access_key_id="synthetic",
            aws_secret_access_key="synthetic",
        )
        account.create_stack(StackName="tollgate", TemplateBody=json.dumps(UNPROTECTED))
        called, result = deploy_to(url, tmp_path, "default")
        (stack,) = account.describe_stacks(StackName="tollgate")["Stacks"]
        account.delete_stack(StackName="tollgate")
    assert result.returncode == 0, result.stderr
    assert "--parameter-overrides" not in called[0]
    assert stack["Parameters"][0]["ParameterValue"] == protection


@pytest.mark.parametrize(
    ("unreserved", "decided"), first(1, [(119, True), (120, False), (10, True)])
)
def test_an_account_that_can_reserve_nothing_reserves_nothing(
    tmp_path: Path, unreserved: int, *, decided: bool
) -> None:
    with empty_account() as url, limits_of_lambda(unreserved) as limits_url:
        called, _ = deploy_to(url, tmp_path, "default", AWS_ENDPOINT_URL_LAMBDA=limits_url)
        assert ("ReaderReservedConcurrency=none" in called[0]) is decided
        # A stage that states the parameter is obeyed.
        text = (tmp_path / "samconfig.toml").read_text()
        header = "[default.deploy.parameters]\n"
        stated = f'{header}parameter_overrides = "ReaderReservedConcurrency=5"\n'
        (tmp_path / "samconfig.toml").write_text(text.replace(header, stated))
        called, _ = deploy_to(url, tmp_path, "default", AWS_ENDPOINT_URL_LAMBDA=limits_url)
        assert "ReaderReservedConcurrency=none" not in called[-2]


@contextmanager
def limits_of_lambda(unreserved: int) -> Iterator[str]:
    """Run a server that knows the account's limits, and yield its URL."""

    class Limits(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            limits = {"AccountLimit": {"UnreservedConcurrentExecutions": unreserved}}
            content = json.dumps(limits).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Limits) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_change_sets_of_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SIGNED_IN.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        formation = boto3.client("cloudformation", "eu-west-1")
        formation.create_stack(StackName="tollgate", TemplateBody=json.dumps(UNPROTECTED))
        account = AwsAccount("eu-west-1")

        def propose(name: str) -> None:
            resources = {**UNPROTECTED["Resources"], name: {"Type": "AWS::SNS::Topic"}}
            formation.create_change_set(
                StackName="tollgate",
                ChangeSetName=name,
                TemplateBody=json.dumps({**UNPROTECTED, "Resources": resources}),
            )

        propose("Theirs")
        before = account.waiting_change_sets("tollgate")
        # A deploy without changes: SAM deletes its own change set.
        assert not account.discard_change_sets("tollgate", but=before)
        propose("Declined")
        assert account.discard_change_sets("tollgate", but=before)
        assert account.waiting_change_sets("tollgate") == {"Theirs"}


def test_c54_a_deploy_that_fails_publishes_nothing(tmp_path: Path) -> None:
    called, result = deploy(tmp_path, "default", sam_status=1)
    assert called == [sam_deploy(tmp_path, "default", "tollgate")]
    assert result.returncode == 1
    assert "Next" not in result.stdout


def test_c54_a_deploy_that_cannot_publish_fails(tmp_path: Path) -> None:
    _, result = deploy(tmp_path, "default", publish_status=1)
    assert result.returncode == 1
    assert "Next" not in result.stdout


@pytest.mark.nightly
def test_without_a_terminal_the_options_to_set_are_named(tmp_path: Path) -> None:
    with empty_account() as url:
        refused = deployed(tmp_path, AWS_ENDPOINT_URL=url, **SIGNED_IN)
        assert refused.returncode == 1
        assert "tollgate deploy --region us-east-1 --email you@example.com" in refused.stderr
        options = ("--region", "eu-west-1", "--email", "me@example.com")
        told = deployed(tmp_path, *options, AWS_ENDPOINT_URL=url, SAM="false", **SIGNED_IN)
    assert told.stdout.startswith("Deploying stack tollgate to eu-west-1 as arn:aws:")
    kept = tomllib.loads((tmp_path / "samconfig.toml").read_text())["default"]["deploy"]
    assert kept["parameters"]["region"] == "eu-west-1"
    assert kept["parameters"]["parameter_overrides"] == "AlarmEmail=me@example.com"


@pytest.mark.nightly
def test_an_address_is_not_written_beside_parameters_that_are_stated(tmp_path: Path) -> None:
    header = "[default.deploy.parameters]\n"
    text = (ROOT / "samconfig.toml").read_text()
    stating = text.replace(header, f'{header}parameter_overrides = "LogRetentionDays=7"\n')
    (tmp_path / "samconfig.toml").write_text(stating)
    with empty_account() as url:
        options = ("--region", "eu-west-1", "--email", "me@example.com")
        refused = deployed(tmp_path, *options, AWS_ENDPOINT_URL=url, **SIGNED_IN)
    assert refused.returncode == 1
    assert "add AlarmEmail=me@example.com there" in refused.stderr
    assert (tmp_path / "samconfig.toml").read_text() == stating


@pytest.mark.parametrize(
    ("options", "said"),
    first(
        1,
        [
            (("nowhere",), "samconfig.toml has no stage 'nowhere'"),
            (("--region", "mars"), "'mars' is not a region"),
        ],
    ),
)
def test_what_cannot_be_is_refused_before_anything_is_asked_of_aws(
    tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    refused = deployed(tmp_path, *options)
    assert (refused.returncode, said in refused.stderr) == (1, True)


def test_answers_are_kept_beside_what_the_stage_says_already() -> None:
    text = (ROOT / "samconfig.toml").read_text()
    stage = read_stage(text, "prod")
    after = tomllib.loads(keep_answers(text, stage, "eu-west-1", ""))
    before = tomllib.loads(text)
    for command in ("deploy", "delete"):
        before["prod"][command]["parameters"]["region"] = "eu-west-1"
    assert after == before
    assert read_stage(keep_answers(text, stage, "eu-west-1", ""), "prod").region == "eu-west-1"


@pytest.mark.parametrize("answer", ['a@b.c" x="', "a@b", "me", "a b@c.de", "a@b.c Other=1"])
def test_an_address_cannot_become_another_parameter(answer: str) -> None:
    with pytest.raises(InvalidAnswer):
        parse_email(answer)


@pytest.mark.nightly
def test_what_is_to_be_pasted_is_what_the_api_takes(tmp_path: Path) -> None:
    _, result = deploy(tmp_path, "default")
    bodies = re.findall(r"-d '(\{.*\})'", result.stdout)
    NewKeyBody.model_validate_json(bodies[0])
    GrantBody.model_validate_json(bodies[1])
    assert '"stream": true' in bodies[2]


@pytest.mark.nightly
def test_the_command_line_knows_the_commands_that_it_names(tmp_path: Path) -> None:
    _, result = deploy(tmp_path, "default")
    named = re.findall(r"tollgate ([a-z][\w-]+) --stack", result.stdout)
    assert named
    for command in named:
        assert main.get_command(click.Context(main), command), command
