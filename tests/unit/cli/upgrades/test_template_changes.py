"""What a new template changes, and which changes lose data."""

import pytest

from tollgate.cli.upgrades.template_changes import (
    find_lost_data,
    list_template_changes,
    load_template,
)

BEFORE = """\
Parameters:
  Memory: {Type: Number, Default: 512}
  Gone: {Type: String, Default: ""}
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: RetainExceptOnCreate
    Properties:
      TableName: !Sub "${AWS::StackName}-core"
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      BillingMode: PAY_PER_REQUEST
  Key: {Type: AWS::KMS::Key, Properties: {KeySpec: SYMMETRIC_DEFAULT}}
  Chat:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Ask: {Type: Api, Properties: {Path: /v1/chat, Method: POST}}
  Role:
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyDocument:
            Statement:
              - Effect: Allow
                Action: [dynamodb:GetItem, dynamodb:Query]
                Resource: !GetAtt Table.Arn
"""
HARMLESS = {
    "another index": ("AttributeType: S}]", "AttributeType: S}, {AttributeName: x}]"),
    "another mode": ("PAY_PER_REQUEST", "PROVISIONED"),
    "another path": ("/v1/chat", "/v1/ask"),
}
LOSSES = {
    "removed": ("  Table:\n", "  Other:\n", "Table (AWS::DynamoDB::Table) is removed"),
    "named": ("-core", "-main", "Table (AWS::DynamoDB::Table) is replaced, because TableName"),
    "keyed": ("KeyType: HASH", "KeyType: RANGE", "because KeySchema changes"),
    "typed": ("AttributeType: S", "AttributeType: B", "an entry of AttributeDefinitions changes"),
    "another resource": ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable", "is removed"),
    "conditional": ("::Table\n", "::Table\n    Condition: Kept\n", "under another condition"),
    "not kept": ("RetainExceptOnCreate", "Delete", "loses its DeletionPolicy"),
    "another key": ("SYMMETRIC_DEFAULT", "RSA_2048", "Key (AWS::KMS::Key) is replaced"),
}


def lost(before: str, after: str) -> list[str]:
    return list(find_lost_data(load_template(before), load_template(after)))


@pytest.mark.parametrize("name", LOSSES)
def test_a_change_that_loses_data_is_named(name: str) -> None:
    was, then, reason = LOSSES[name]
    (found,) = lost(BEFORE, BEFORE.replace(was, then, 1))
    assert reason in found


@pytest.mark.parametrize("name", HARMLESS)
def test_other_changes_keep_the_data(name: str) -> None:
    assert lost(BEFORE, BEFORE.replace(*HARMLESS[name], 1)) == []


def test_parameters_paths_and_permissions_are_compared() -> None:
    after = BEFORE.replace("Gone:", "New:").replace("512", "1024").replace("/v1/chat", "/v1/ask")
    after = after.replace("dynamodb:Query", "dynamodb:Scan")
    changes = list_template_changes(load_template(BEFORE), load_template(after))
    assert {change.title: list(change.lines) for change in changes} == {
        "parameters": [
            "- Gone (default empty)",
            "+ New (default empty)",
            "~ Memory (default 512) → (default 1024)",
        ],
        "paths": ["- POST /v1/chat", "+ POST /v1/ask"],
        "permissions": [
            "- Role allow dynamodb:Query on Table.Arn",
            "+ Role allow dynamodb:Scan on Table.Arn",
        ],
    }
