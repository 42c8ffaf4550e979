"""Chat on Lambda Managed Instances: a function beside the one on demand, and where it runs."""

import json

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from infra.artefact.build import FUNCTIONS
from tests.infra.translation import Stack
from tollgate.web.http.paths import STREAMING_PATHS

MANAGED = {
    "CapacityRole",
    "ChatCapacityProvider",
    "ManagedChatFunction",
    "ManagedChatFunctionAliaslive",
    "ManagedChatInvocation",
}
NETWORK = {"ManagedSubnetIds": "subnet-1,subnet-2", "ManagedSecurityGroupIds": "sg-1"}


@pytest.fixture(scope="module")
def managed(any_stack: Stack) -> Stack:
    return any_stack.given(ChatCapacity="managed", **NETWORK)


def test_streamed_routes_call_the_managed_function(stack: Stack, managed: Stack) -> None:
    for chosen, alias in ((stack, "ChatFunction"), (managed, "ManagedChatFunction")):
        streamed = [it for it in chosen.routes() if it.method == "post"]
        assert {it.path for it in streamed} == set(STREAMING_PATHS)
        assert {it.function for it in streamed} == {f"{alias}Aliaslive"}


def test_an_idle_stack_has_no_instances(stack: Stack) -> None:
    assert stack.resources("AWS::Lambda::CapacityProvider") == {}
    assert "CapacityProviderConfig" not in json.dumps(stack.functions)


def test_the_managed_function_differs_from_the_other_in_its_capacity_only(managed: Stack) -> None:
    on_demand, function = (
        managed.functions[name] for name in ("ChatFunction", "ManagedChatFunction")
    )
    differs = {
        name for name in on_demand.keys() | function if on_demand.get(name) != function.get(name)
    }
    assert differs == {"CapacityProviderConfig", "FunctionScalingConfig", "MemorySize"}
    assert function["CapacityProviderConfig"] == {
        "LambdaManagedInstancesCapacityProviderConfig": {
            "CapacityProviderArn": {"Fn::GetAtt": ["ChatCapacityProvider", "Arn"]},
            "PerExecutionEnvironmentMaxConcurrency": {"Ref": "ManagedConcurrency"},
            "ExecutionEnvironmentMemoryGiBPerVCpu": {"Ref": "ManagedGiBPerVCpu"},
        }
    }
    assert function["FunctionScalingConfig"] == {
        "MinExecutionEnvironments": {"Ref": "ManagedMinimum"}
    }
    (version,) = (
        it
        for it in managed.properties("AWS::Lambda::Version").values()
        if it["FunctionName"] == {"Ref": "ManagedChatFunction"}
    )
    # An alias invokes a version, whose scaling Lambda reads.
    assert version["FunctionScalingConfig"] == function["FunctionScalingConfig"]
    for parameter in ("ManagedMemoryMb", "ManagedGiBPerVCpu", "ManagedConcurrency"):
        assert f"${{{parameter}}}" in managed.descriptions()["ManagedChatFunction"]


def test_alarms_watch_the_function_that_serves(managed: Stack) -> None:
    alarms = managed.properties("AWS::CloudWatch::Alarm")
    for name in ("ChatThrottlesAlarm", "ChatDurationAlarm"):
        assert alarms[name]["Dimensions"][0]["Value"] == {"Ref": "ManagedChatFunction"}


def test_both_functions_are_built_alike(managed: Stack) -> None:
    assert set(FUNCTIONS) == set(managed.functions)
    assert FUNCTIONS["ManagedChatFunction"] == FUNCTIONS["ChatFunction"]


def test_managed_instances_without_a_network_are_refused(any_stack: Stack) -> None:
    rule = any_stack.template["Rules"]["ManagedHasNetwork"]
    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "ChatCapacity"}, "managed"]}
    assert [it["Assert"]["Fn::Not"][0]["Fn::Equals"] for it in rule["Assertions"]] == [
        [{"Ref": "ManagedSubnetIds"}, ""],
        [{"Ref": "ManagedSecurityGroupIds"}, ""],
    ]


def test_snapshots_and_warm_environments_exclude_each_other(any_stack: Stack) -> None:
    rule = any_stack.template["Rules"]["SnapshotsAreNotProvisioned"]
    assert rule["RuleCondition"] == {"Fn::Equals": [{"Ref": "ChatSnapStart"}, "true"]}
    (refused,) = rule["Assertions"]
    assert refused["Assert"] == {"Fn::Equals": [{"Ref": "ChatProvisionedConcurrency"}, ""]}


def test_one_environment_has_one_vcpu_for_its_one_process(managed: Stack) -> None:
    defaults = {name: it["Default"] for name, it in managed.parameters.items()}
    assert defaults["ManagedMemoryMb"] == defaults["ManagedGiBPerVCpu"] * 1024


def test_instances_are_where_and_what_the_parameters_say(managed: Stack) -> None:
    (provider,) = managed.properties("AWS::Lambda::CapacityProvider").values()
    assert provider["VpcConfig"] == {
        "SubnetIds": {"Fn::Split": [",", {"Ref": "ManagedSubnetIds"}]},
        "SecurityGroupIds": {"Fn::Split": [",", {"Ref": "ManagedSecurityGroupIds"}]},
    }
    assert provider["InstanceRequirements"] == {"Architectures": ["arm64"]}
    assert provider["CapacityProviderScalingConfig"]["MaxVCpuCount"] == {"Ref": "ManagedVCpuMax"}


def test_only_lambda_in_this_account_starts_instances(managed: Stack) -> None:
    role = managed.roles["CapacityRole"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    assert [it["Fn::Sub"].rpartition("/")[2] for it in role["ManagedPolicyArns"]] == [
        "AWSLambdaManagedEC2ResourceOperator"
    ]
    assert "Policies" not in role


def test_the_api_may_call_each_function_only_on_its_routes(managed: Stack) -> None:
    found = {
        it["FunctionName"]["Ref"]: it["SourceArn"]["Fn::Sub"].partition("${Api}")[2]
        for it in managed.properties("AWS::Lambda::Permission").values()
        if it["Principal"] == "apigateway.amazonaws.com"
    }
    assert found == {
        "ChatFunctionAliaslive": "/*/POST/v1/*",
        "ManagedChatFunctionAliaslive": "/*/POST/v1/*",
        "ApiFunctionAliaslive": "/*",
        "LoginFunctionAliaslive": "/*",
    }


def test_the_bounds_are_those_of_the_service(managed: Stack) -> None:
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(
        "us-east-1", "AWS::Lambda::Function"
    ).schema
    bounds = schema["definitions"]["LambdaManagedInstancesCapacityProviderConfig"]["properties"]
    stated = managed.parameters["ManagedConcurrency"]
    assert stated["MaxValue"] == bounds["PerExecutionEnvironmentMaxConcurrency"]["maximum"]
    ratio = bounds["ExecutionEnvironmentMemoryGiBPerVCpu"]
    allowed = managed.parameters["ManagedGiBPerVCpu"]["AllowedValues"]
    assert (min(allowed), max(allowed)) == (ratio["minimum"], ratio["maximum"])
