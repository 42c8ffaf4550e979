"""`tollgate batches dead-letters`: what workers failed at, shown and sent again.

Keeps C83.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from click.testing import CliRunner

from tests.ministack import ministack_command, running_ministack
from tollgate.cli.main import main

QUEUES = ("BatchQueue", "BackgroundQueue")


class Stack:
    """A deployed stack's queues."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.sqs: Any = boto3.client("sqs", "us-east-1", endpoint_url=url)
        dead = {
            "deadLetterTargetArn": {"Fn::GetAtt": ["BatchFailures", "Arn"]},
            "maxReceiveCount": 1,
        }
        resources: dict[str, Any] = {
            queue: {"Type": "AWS::SQS::Queue", "Properties": {"RedrivePolicy": dead}}
            for queue in QUEUES
        }
        resources["BatchFailures"] = {"Type": "AWS::SQS::Queue"}
        cloudformation = boto3.client("cloudformation", "us-east-1", endpoint_url=url)
        cloudformation.create_stack(
            StackName=name, TemplateBody=json.dumps({"Resources": resources})
        )
        cloudformation.get_waiter("stack_create_complete").wait(
            StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 20}
        )
        found = cloudformation.describe_stack_resources(StackName=name)["StackResources"]
        self.urls = {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in found}

    def fail(self, queue: str, body: str) -> None:
        """Send a message that a worker receives and does not finish."""
        url = self.urls[queue]
        self.sqs.send_message(QueueUrl=url, MessageBody=body)
        for _ in range(2):
            self.sqs.receive_message(QueueUrl=url, VisibilityTimeout=0)

    def bodies(self, queue: str) -> list[str]:
        """Receive what waits in a queue, and hide it for a second."""
        url, bodies = self.urls[queue], list[str]()
        while found := self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1
        ).get("Messages"):
            bodies += [each["Body"] for each in found]
        return sorted(bodies)


@pytest.fixture(scope="module")
def aws_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An AWS with stacks and queues."""
    if ministack_command() is None:
        pytest.skip("ministack is not installed")
    folder = tmp_path_factory.mktemp("ministack")
    with running_ministack(folder, services="cloudformation,sqs") as url:
        yield url


@pytest.fixture
def deployed(aws_url: str, monkeypatch: pytest.MonkeyPatch) -> Stack:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_url)
    return Stack(aws_url, f"dead-{os.urandom(4).hex()}")


def run(deployed: Stack, *options: str) -> Any:
    result = CliRunner().invoke(
        main,
        ["batches", "dead-letters", "--stack", deployed.name, "--region", "us-east-1", *options],
    )
    assert result.exit_code == 0, result.output
    return result


def place(number: int) -> str:
    return json.dumps({"workspace_id": "acme", "batch_id": f"batch_{number}"})


def test_c83_dead_letters_are_listed_and_sent_again_to_their_queues(deployed: Stack) -> None:
    for number in range(12):
        deployed.fail("BatchQueue", place(number))
    deployed.fail("BackgroundQueue", '{"workspace_id":"acme","batch_id":"resp_1"}')
    deployed.fail("BatchQueue", "corrupt")
    # A list hides no message from the next one.
    for _ in range(2):
        listed = json.loads(run(deployed, "--json").stdout)
        assert len(listed) == 14
    ids = [each["id"] for each in listed]
    assert {"batch_0", "resp_1", "unreadable"} <= {*ids}
    [response] = [each for each in listed if each["id"] == "resp_1"]
    assert (response["workspace"], response["queue"]) == ("acme", "BackgroundQueue")
    assert response["sent_at"].endswith("Z")
    result = run(deployed, "--send-again")
    assert "Sent 14 messages again." in result.stdout
    assert len(deployed.bodies("BatchQueue")) == 13
    assert len(deployed.bodies("BackgroundQueue")) == 1
    assert json.loads(run(deployed, "--json").stdout) == []


def test_c83_a_message_that_no_queue_has_failed_stays(deployed: Stack) -> None:
    url = deployed.urls["BatchFailures"]
    deployed.sqs.send_message(QueueUrl=url, MessageBody=place(1))
    assert "Sent 0 messages again." in run(deployed, "--send-again").stdout
    [left] = json.loads(run(deployed, "--json").stdout)
    assert (left["id"], left["queue"]) == ("batch_1", "")


def test_c83_a_stack_that_is_not_there_is_named(deployed: Stack) -> None:
    options = ["batches", "dead-letters", "--stack", "elsewhere", "--region", "us-east-1"]
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 1
    assert "elsewhere" in result.output
