"""The resources that hold data, made for real by moto's CloudFormation and then read back.

moto does not know REST APIs with a body, stages or aliases, and takes no notice of a table's TTL,
recovery and encryption (moto 5.2): those are asserted on the document only.
"""

import ast
import json
from collections.abc import Iterator
from typing import Any, Final

import boto3
import pytest
from moto import mock_aws

from tests.infra.translation import JsonObject, Stack

REGION: Final = "us-east-1"
MADE: Final = (
    "AWS::DynamoDB::Table",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Role",
    "AWS::KMS::Key",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::SNS::Topic",
    "AWS::SQS::Queue",
)


def retained_part(stack: Stack) -> JsonObject:
    """The resources that moto can make, with all that they refer to."""
    found = {name: it for kind in MADE for name, it in stack.resources(kind).items()}
    # No role reaches a function but the one that reads documents.
    reader, arn = {"Fn::GetAtt": ["ReaderFunction", "Arn"]}, "arn:aws:lambda:::function:reader"
    resources = json.loads(json.dumps(found).replace(json.dumps(reader), json.dumps(arn)))
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": stack.parameters,
        "Resources": resources,
        "Outputs": {
            name: {"Value": {"Ref": name}}
            for name in resources
            if resources[name]["Type"] == "AWS::DynamoDB::Table"
        },
    }


@pytest.fixture
def deployed(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The stack made in an account of its own; physical table names by logical id."""
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "testing")
    with mock_aws():
        client = boto3.client("cloudformation", region_name=REGION)
        client.create_stack(StackName="tollgate", TemplateBody=json.dumps(retained_part(stack)))
        (made,) = client.describe_stacks(StackName="tollgate")["Stacks"]
        assert made["StackStatus"] == "CREATE_COMPLETE"
        yield {it["OutputKey"]: it["OutputValue"] for it in made["Outputs"]}


def described(table: str) -> dict[str, Any]:
    answer: dict[str, Any] = boto3.client("dynamodb", region_name=REGION).describe_table(
        TableName=table
    )
    return answer["Table"]


def test_tables_come_into_being_as_the_stores_expect_them(deployed: dict[str, str]) -> None:
    assert set(deployed) == {"CoreTable", "LedgerTable", "GenerationsTable"}
    for logical_id, name in deployed.items():
        table = described(name)
        assert table["TableStatus"] == "ACTIVE"
        assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        keys = [(it["AttributeName"], it["KeyType"]) for it in table["KeySchema"]]
        assert keys == [("pk", "HASH"), ("sk", "RANGE")], logical_id
        # moto keeps the parameter's text, where DynamoDB has a boolean.
        assert str(table["DeletionProtectionEnabled"]).lower() == "true"


def test_a_second_first_deploy_meets_no_table_of_the_first(
    deployed: dict[str, str], stack: Stack
) -> None:
    client = boto3.client("cloudformation", region_name=REGION)
    client.create_stack(StackName="another", TemplateBody=json.dumps(retained_part(stack)))
    (made,) = client.describe_stacks(StackName="another")["Stacks"]
    assert made["StackStatus"] == "CREATE_COMPLETE"
    assert not set(deployed.values()) & {it["OutputValue"] for it in made["Outputs"]}


def test_roles_resolve_to_exact_arns(deployed: dict[str, str], stack: Stack) -> None:
    client = boto3.client("iam", region_name=REGION)
    policies: list[JsonObject] = [
        # AWS answers JSON here, moto the text of the Python value.
        ast.literal_eval(
            client.get_role_policy(RoleName=role["RoleName"], PolicyName=policy)["PolicyDocument"]
        )
        for role in client.list_roles()["Roles"]
        for policy in client.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]
    ]
    # The policy of chat and the one that chat and batches share, for one more than functions, and
    # the policy of the role that Bedrock assumes.
    assert len(policies) == len(stack.functions) + 2
    resources = [
        resource
        for policy in policies
        for statement in policy["Statement"]
        for resource in (
            statement["Resource"]
            if isinstance(statement["Resource"], list)
            else [statement["Resource"]]
        )
    ]
    assert all(it.startswith("arn:aws:") and "${" not in it for it in resources)
    assert any(it.endswith(f"table/{deployed['LedgerTable']}") for it in resources)


def test_logs_are_forgotten(deployed: dict[str, str]) -> None:
    groups = boto3.client("logs", region_name=REGION).describe_log_groups()["logGroups"]
    assert len(groups) == 7
    assert {it["retentionInDays"] for it in groups} == {30}
