"""Each function's role: exactly these actions on exactly these resources."""

import re
from typing import Final

from tests.infra.translation import JsonObject, Stack

LOGS: Final = {"logs:CreateLogStream", "logs:PutLogEvents"}

SECRETS: Final = (
    "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${SecretPrefix}*"
)

PERMISSIONS: Final = {
    "ChatRole": {
        "ChatLogs": LOGS,
        "CoreTable": {"dynamodb:BatchGetItem", "dynamodb:GetItem"},
        "LedgerTable": {"dynamodb:GetItem", "dynamodb:UpdateItem"},
        "GenerationsTable": {"dynamodb:GetItem", "dynamodb:PutItem"},
        SECRETS: {"secretsmanager:GetSecretValue"},
        "BedrockModelArns": {"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"},
    },
    "ApiRole": {
        "ApiLogs": LOGS,
        "CoreTable": {
            "dynamodb:BatchGetItem",
            "dynamodb:ConditionCheckItem",
            "dynamodb:DeleteItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        },
        "LedgerTable": {
            "dynamodb:BatchGetItem",
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:Query",
            "dynamodb:UpdateItem",
        },
        "GenerationsTable": {"dynamodb:GetItem", "dynamodb:Query"},
    },
    "SweeperRole": {
        "SweeperLogs": LOGS,
        "LedgerTable": {"dynamodb:Scan", "dynamodb:UpdateItem"},
        "GenerationsTable": {"dynamodb:GetItem", "dynamodb:PutItem"},
    },
    "RollupRole": {
        "RollupLogs": LOGS,
        "CoreTable": {"dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan"},
        "GenerationsTable": {"dynamodb:Query"},
    },
}


def statements(role: JsonObject) -> list[JsonObject]:
    return [it for policy in role["Policies"] for it in policy["PolicyDocument"]["Statement"]]


def resource_name(resource: JsonObject) -> str:
    """A resource by its logical id, a parameter by its name, a pattern as it is."""
    match resource:
        case {"Fn::GetAtt": [name, "Arn"]} | {"Ref": name} | {"Fn::Sub": name}:
            return str(name)
        case _:
            raise AssertionError(f"the table of permissions cannot name {resource}")


def permissions(role: JsonObject) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for statement in statements(role):
        assert statement["Effect"] == "Allow"
        assert set(statement) == {"Effect", "Action", "Resource"}
        actions = statement["Action"]
        name = resource_name(statement["Resource"])
        assert name not in found, f"two statements for {name}"
        found[name] = {actions} if isinstance(actions, str) else set(actions)
    return found


def test_every_function_has_a_role_of_its_own(stack: Stack) -> None:
    assert {name: function["Role"] for name, function in stack.functions.items()} == {
        "ChatFunction": {"Fn::GetAtt": ["ChatRole", "Arn"]},
        "ApiFunction": {"Fn::GetAtt": ["ApiRole", "Arn"]},
        "SweeperFunction": {"Fn::GetAtt": ["SweeperRole", "Arn"]},
        "RollupFunction": {"Fn::GetAtt": ["RollupRole", "Arn"]},
    }
    assert set(stack.properties("AWS::IAM::Role")) == set(PERMISSIONS)


def test_roles_allow_exactly_what_their_functions_do(stack: Stack) -> None:
    roles = stack.properties("AWS::IAM::Role")
    assert {name: permissions(role) for name, role in roles.items()} == PERMISSIONS


def test_roles_get_nothing_by_other_ways(stack: Stack) -> None:
    for name, role in stack.properties("AWS::IAM::Role").items():
        assert "ManagedPolicyArns" not in role, name
    assert not stack.resources("AWS::IAM::Policy")
    assert not stack.resources("AWS::IAM::ManagedPolicy")


def test_only_lambda_assumes_the_roles(stack: Stack) -> None:
    for name, role in stack.properties("AWS::IAM::Role").items():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Principal"] == {"Service": "lambda.amazonaws.com"}, name


def test_bedrock_is_limited_to_models_and_inference_profiles(stack: Stack) -> None:
    arns = stack.parameters["BedrockModelArns"]["Default"].split(",")
    assert arns == [
        "arn:aws:bedrock:*::foundation-model/*",
        "arn:aws:bedrock:*:*:inference-profile/*",
    ]


def test_the_secrets_are_a_folder_and_never_all(stack: Stack) -> None:
    prefix = stack.parameters["SecretPrefix"]
    assert prefix["Default"] == "tollgate/"
    for accepted in ("tollgate/", "team/tollgate/"):
        assert re.search(prefix["AllowedPattern"], accepted), accepted
    for refused in ("", "/", "*", "*/", "tollgate", "tollgate*/"):
        assert not re.search(prefix["AllowedPattern"], refused), refused
