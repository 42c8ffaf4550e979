"""A create that fails after the tables and the bucket were made, on an account on loopback.

`DeletionPolicy` in the CloudFormation template reference (seen 2026-11-22): with
RetainExceptOnCreate, a create that is rolled back deletes what it made. That DynamoDB would refuse
it for protected tables cannot be shown here: ministack's CloudFormation deletes them all the same.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

import boto3
import pytest
from botocore.exceptions import WaiterError

from tests.infra.translation import JsonObject, Stack
from tests.ministack import ministack_command, running_ministack

NAME: Final = "tollgate"
KEPT: Final = ("AWS::DynamoDB::Table", "AWS::S3::Bucket")


class Account:
    """The clients of an account in which every stack fails at its end."""

    def __init__(self, url: str) -> None:
        self.cloudformation, self.dynamodb, self.s3 = (
            boto3.client(
                name,
                "us-east-1",
                endpoint_url=url,
                aws_access_key_id="synthetic",
                aws_secret_access_key="synthetic",
            )
            for name in ("cloudformation", "dynamodb", "s3")
        )

    def create(self, template: JsonObject, **parameters: str) -> str:
        """Create the stack, and return the status that the rollback leaves."""
        self.cloudformation.create_stack(
            StackName=NAME,
            TemplateBody=json.dumps(template),
            Parameters=[
                {"ParameterKey": name, "ParameterValue": value}
                for name, value in parameters.items()
            ],
        )
        waiter = self.cloudformation.get_waiter("stack_create_complete")
        with pytest.raises(WaiterError):
            waiter.wait(StackName=NAME, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        return self.status()

    def status(self) -> str:
        (stack,) = self.cloudformation.describe_stacks(StackName=NAME)["Stacks"]
        return str(stack["StackStatus"])

    def left(self) -> list[Any]:
        """Return the tables and buckets that there are."""
        return [*self.dynamodb.list_tables()["TableNames"], *self.s3.list_buckets()["Buckets"]]


@pytest.fixture
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    if ministack_command() is None:
        pytest.skip("ministack is not installed: run `make test`")
    directory = tmp_path_factory.mktemp("account")
    with running_ministack(directory, services="cloudformation,dynamodb,s3") as url:
        yield Account(url)


@pytest.fixture
def failing(stack: Stack) -> JsonObject:
    """The resources that hold data, and then a signal that nobody gives."""
    kept = {name: copy.deepcopy(it) for kind in KEPT for name, it in stack.resources(kind).items()}
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": stack.parameters,
        "Resources": {
            **kept,
            "Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"},
            "Signal": {
                "Type": "AWS::CloudFormation::WaitCondition",
                "DependsOn": list(kept),
                "Properties": {"Handle": {"Ref": "Handle"}, "Timeout": "1"},
            },
        },
    }


@pytest.mark.nightly
def test_a_first_deploy_that_fails_leaves_nothing(account: Account, failing: JsonObject) -> None:
    assert account.create(failing, TableDeletionProtection="false") == "ROLLBACK_COMPLETE"
    assert account.left() == []


@pytest.mark.nightly
def test_with_plain_retain_each_attempt_would_leave_its_data(
    account: Account, failing: JsonObject
) -> None:
    for resource in failing["Resources"].values():
        if resource["Type"] in KEPT:
            resource["DeletionPolicy"] = "Retain"
    assert account.create(failing, TableDeletionProtection="false") == "ROLLBACK_COMPLETE"
    assert len(account.left()) == 4


def test_a_stack_that_came_into_being_is_deleted_without_its_data(
    account: Account, failing: JsonObject
) -> None:
    del failing["Resources"]["Signal"]
    account.cloudformation.create_stack(StackName=NAME, TemplateBody=json.dumps(failing))
    config = {"Delay": 1, "MaxAttempts": 60}
    made = account.cloudformation.get_waiter("stack_create_complete")
    made.wait(StackName=NAME, WaiterConfig=config)
    account.cloudformation.delete_stack(StackName=NAME)
    gone = account.cloudformation.get_waiter("stack_delete_complete")
    gone.wait(StackName=NAME, WaiterConfig=config)
    assert len(account.left()) == 4
