"""The role in whose sessions Bedrock is called, which the parameter `BedrockSessions` creates.

Keeps C103.
"""

import json

import pytest

from tests.infra.generating import GENERATES
from tests.infra.test_roles import compile_permissions
from tests.infra.translation import ROOT, Stack
from tollgate.cli.routing.permissions import BEDROCK_BEGIN, write_permissions
from tollgate.routing.file.permissions import Permissions

VARIABLE = "TOLLGATE_BEDROCK_ROLE_ARN"


@pytest.fixture(scope="module")
def by_team(any_stack: Stack) -> Stack:
    return any_stack.given(BedrockSessions="true")


def test_c103_there_is_no_such_role_unless_it_is_asked_for(stack: Stack) -> None:
    assert "BedrockRole" not in stack.template["Resources"]
    assert "BedrockRole" not in json.dumps(stack.template["Resources"])
    assert not any(VARIABLE in stack.environment(name) for name in stack.functions)


def test_c103_a_session_may_do_what_functions_may_do_at_bedrock_and_nothing_else(
    by_team: Stack,
) -> None:
    at_bedrock = {
        resource: {it for it in actions if it.startswith("bedrock")}
        for resource, actions in GENERATES.items()
    }
    found = compile_permissions(by_team.roles["BedrockRole"])
    assert found == {resource: actions for resource, actions in at_bedrock.items() if actions}
    assert len(found) > 20


def test_c103_only_the_functions_that_call_providers_assume_the_role(
    by_team: Stack, any_stack: Stack
) -> None:
    (statement,) = by_team.roles["BedrockRole"]["AssumeRolePolicyDocument"]["Statement"]
    assert statement == {
        "Effect": "Allow",
        "Principal": {
            "AWS": [{"Fn::GetAtt": ["ChatRole", "Arn"]}, {"Fn::GetAtt": ["BatchRole", "Arn"]}]
        },
        "Action": ["sts:AssumeRole", "sts:TagSession"],
    }
    role = {"Fn::GetAtt": ["BedrockRole", "Arn"]}
    managed = any_stack.given(BedrockSessions="true", ChatCapacity="managed")
    for stack, names in (
        (by_team, {"ChatFunction", "BatchFunction"}),
        (managed, {"ChatFunction", "ManagedChatFunction", "BatchFunction"}),
    ):
        found = {it: stack.environment(it).get(VARIABLE) for it in stack.functions}
        assert {it: value for it, value in found.items() if value} == dict.fromkeys(names, role)


def test_c103_the_parameter_publishes_a_version_of_the_chat_function(
    stack: Stack, by_team: Stack
) -> None:
    def marks(found: Stack) -> list[object]:
        versions = found.properties("AWS::Lambda::Version").values()
        texts = [each["Description"]["Fn::Sub"] for each in versions]
        return [text[1]["BedrockSessions"] for text in texts if isinstance(text, list)]

    assert (marks(stack), marks(by_team)) == ([" "], ["s"])


def test_c103_without_models_at_bedrock_the_role_may_do_nothing() -> None:
    template = (ROOT / "infra" / "template.yaml").read_text()
    written = write_permissions(template, Permissions(models=(), secrets=()))
    _, _, rest = written.partition(BEDROCK_BEGIN)
    assert rest.splitlines()[1].strip() == "Policies: []"
