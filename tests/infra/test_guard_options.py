"""Options that limit who reaches the API and what strangers' documents may take.

Keeps C1.
"""

import re

from tests.infra.test_options import ENDPOINTS
from tests.infra.translation import Stack, load_template, translate
from tests.local_server import ROOT
from tollgate.settings import Settings


def test_concurrency_is_the_accounts_unless_asked(any_stack: Stack) -> None:
    assert "ReservedConcurrentExecutions" not in any_stack.given().functions["ChatFunction"]
    reserved = any_stack.given(ChatReservedConcurrency="50").functions["ChatFunction"]
    assert reserved["ReservedConcurrentExecutions"] == {"Ref": "ChatReservedConcurrency"}


def test_readers_never_use_up_the_concurrency_of_chat(any_stack: Stack) -> None:
    usual = any_stack.given().functions["ReaderFunction"]
    assert usual["ReservedConcurrentExecutions"] == {"Ref": "ReaderReservedConcurrency"}
    assert any_stack.parameters["ReaderReservedConcurrency"]["Default"] == "20"
    unlimited = any_stack.given(ReaderReservedConcurrency="none").functions["ReaderFunction"]
    assert "ReservedConcurrentExecutions" not in unlimited


def test_the_reader_alone_may_be_isolated_by_workspace(any_stack: Stack) -> None:
    usual = any_stack.given()
    assert not any("TenancyConfig" in it for it in usual.functions.values())
    isolated = any_stack.given(ReaderTenantIsolation="true")
    found = {name: it.get("TenancyConfig") for name, it in isolated.functions.items()}
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/
    # aws-properties-lambda-function-tenancyconfig.html (2026-11-27)
    assert {name: it for name, it in found.items() if it} == {
        "ReaderFunction": {"TenantIsolationMode": "PER_TENANT"}
    }
    told = isolated.environment("ChatFunction")["TOLLGATE_READER_ISOLATES_TENANTS"]
    assert told == {"Ref": "ReaderTenantIsolation"}
    assert "reader_isolates_tenants" in Settings.model_fields


def test_the_cost_of_isolated_readers_is_computed_from_the_template(any_stack: Stack) -> None:
    page = (ROOT / "infra" / "README.md").read_text(encoding="utf-8")
    page = page.partition("## A reader for each workspace")[2].partition("\n## ")[0]
    page = " ".join(page.split())
    reader = any_stack.functions["ReaderFunction"]
    memory_gb = reader["MemorySize"] / 1024
    # The examples of https://aws.amazon.com/lambda/pricing/ (2026-11-28): $0.000167 a GB for a new
    # environment, and $0.0000133334 a GB-second.
    environment, reading = 0.000167 * memory_gb, 0.0000133334 * memory_gb * reader["Timeout"]
    assert f"${environment:.5f} for the reader" in page
    assert f"${reading:.5f} that a document costs" in page
    assert f"1,000 documents cost ${1_000 * environment:.2f} more" in page
    # https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation-troubleshooting.html
    # (2026-11-28): 2,500 environments for every 1,000 concurrent executions of the function.
    reserved = int(any_stack.parameters["ReaderReservedConcurrency"]["Default"])
    assert f"{reserved * 2_500 // 1_000} with `ReaderReservedConcurrency={reserved}`" in page


def test_a_private_api_is_reached_from_its_endpoints_alone() -> None:
    source = load_template()
    for given, type_, condition in (
        ("", "REGIONAL", None),
        (
            ENDPOINTS,
            "PRIVATE",
            {"StringEquals": {"aws:SourceVpce": {"Fn::Split": [",", ENDPOINTS]}}},
        ),
    ):
        stack = translate(source, PrivateVpcEndpointIds=given).given(PrivateVpcEndpointIds=given)
        (api,) = stack.properties("AWS::ApiGateway::RestApi").values()
        configured = api["EndpointConfiguration"]
        assert configured["Types"] == [type_]
        assert ("VpcEndpointIds" in configured) is bool(given)
        (statement,) = api["Body"]["x-amazon-apigateway-policy"]["Statement"]
        assert statement.get("Condition") == condition
        assert (statement["Effect"], statement["Action"]) == ("Allow", "execute-api:Invoke")


def test_another_policy_of_the_api_is_deployed() -> None:
    # A policy holds from the next deployment on.
    assert load_template()["Resources"]["Api"]["Properties"]["AlwaysDeploy"] is True


def test_a_private_api_has_no_public_domain(any_stack: Stack) -> None:
    rule = any_stack.template["Rules"]["PrivateHasNoDomain"]
    (refused,) = rule["Assertions"]
    assert refused["Assert"] == {"Fn::Equals": [{"Ref": "DomainName"}, ""]}
    pattern = any_stack.parameters["PrivateVpcEndpointIds"]["AllowedPattern"]
    assert re.search(pattern, ENDPOINTS)
    assert not re.search(pattern, "vpc-0a1b")
