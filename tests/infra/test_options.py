"""Resources that the template makes only if a parameter is set.

Keeps C1, C61.
"""

import json
import re
from typing import Final

import pytest

from tests.infra.test_managed import MANAGED
from tests.infra.test_roles import compile_permissions, statements
from tests.infra.test_watching import throttles
from tests.infra.translation import ROOT, Stack
from tollgate.core.money.amounts import NANO_USD_PER_USD
from tollgate.settings import Settings
from tollgate.web.http.paths import STREAMING_PATHS

KEY: Final = "arn:aws:kms:us-east-1:123456789012:key/abc"
TOPIC: Final = "arn:aws:sns:us-east-1:123456789012:budgets"
HOOK: Final = "https://hooks.example.com/budgets"
SECRET: Final = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hook-AbCdEf"
GITHUB: Final = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"
ENDPOINTS: Final = "vpce-0a1b,vpce-2c3d"
# The resources that each option adds to the stack of the defaults.
OPTIONS: Final[dict[str, tuple[dict[str, str], set[str]]]] = {
    "alarm e-mail": ({"AlarmEmail": "a@example.com"}, {"AlarmSubscription"}),
    "key": ({"KmsKeyArn": KEY}, set()),
    "alerts by SNS": ({"AlertTopicArn": TOPIC}, set()),
    "alerts by webhook": ({"AlertWebhookUrl": HOOK, "AlertWebhookSecretArn": SECRET}, set()),
    "rate of chat": ({"ChatRequestsPerSecond": "5"}, set()),
    "burst of chat": ({"ChatRequestsBurst": "9"}, set()),
    "reserved": ({"ChatReservedConcurrency": "50"}, set()),
    "readers": ({"ReaderReservedConcurrency": "none"}, set()),
    "batches": ({"BatchReservedConcurrency": "4"}, set()),
    "isolated readers": ({"ReaderTenantIsolation": "true"}, set()),
    "private": ({"PrivateVpcEndpointIds": ENDPOINTS}, set()),
    "provisioned": ({"ChatProvisionedConcurrency": "2"}, set()),
    "snapshots": ({"ChatSnapStart": "true"}, set()),
    "managed": ({"ChatCapacity": "managed"}, MANAGED),
    "spend": ({"HourlySpendAlarmUsd": "50"}, {"SpendAlarm"}),
    "X-Ray": ({"XRay": "true"}, set()),
    "spans": ({"OtlpEndpointUrl": "https://collector.example:4318"}, set()),
    "headers and content of spans": ({"OtlpHeaders": "true", "OtlpContent": "true"}, set()),
    "sessions at Bedrock": ({"BedrockSessions": "true"}, {"BedrockRole"}),
    "budget": ({"MonthlyBudgetUsd": "100"}, {"MonthlyBudget"}),
    "export": ({"DailyExport": "true"}, set()),
    "audit log": ({"AuditBucket": "acme-audit"}, set()),
    "access logs": ({"AccessLogs": "true"}, {"AccessLogGroup"}),
    "account role": ({"ApiGatewayLogsRole": "true"}, {"ApiGatewayAccount", "ApiGatewayRole"}),
    "publisher": (
        {"GitHubRepository": "acme/gateway", "GitHubOidcProviderArn": GITHUB},
        {"PublishRole"},
    ),
    "firewall": ({"WebAclArn": "arn:aws:wafv2:x"}, {"WebAclAssociation"}),
    "domain": ({"DomainName": "llm.example.com"}, {"Domain", "DomainRoot", "DomainUnderApi"}),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_adds_what_it_says_and_is_off_by_default(option: str, any_stack: Stack) -> None:
    parameters, added = OPTIONS[option]
    found = any_stack.given(**parameters).template["Resources"].keys()
    found -= any_stack.given().template["Resources"].keys()
    assert {it for it in found if not re.search("Version[0-9a-f]{10}$", it)} == added


def test_every_parameter_has_a_default(any_stack: Stack) -> None:
    for name, parameter in any_stack.parameters.items():
        assert "Default" in parameter, name
        assert parameter["Description"], name
        default = str(parameter["Default"])
        assert re.search(parameter.get("AllowedPattern", ""), default), name


def test_every_option_is_tested(any_stack: Stack) -> None:
    conditional = {
        json.dumps(it["Fn::Not"][0] if "Fn::Not" in it else it)
        for it in any_stack.template["Conditions"].values()
    }
    asked = {name for parameters, _ in OPTIONS.values() for name in parameters}
    for condition in conditional:
        (name,) = re.findall(r'"Ref": "(\w+)"', condition)
        assert name in asked


def test_an_option_of_a_published_function_publishes_a_version(any_stack: Stack) -> None:
    usual = any_stack.given().functions
    for parameters, _ in OPTIONS.values():
        asked = any_stack.given(**parameters)
        for name, description in asked.descriptions().items():
            if name not in usual:
                continue
            # Reserved concurrency is the function's, and no version has it.
            before, after = (
                {key: value for key, value in it[name].items() if not key.startswith("Reserved")}
                for it in (usual, asked.functions)
            )
            if before != after:
                assert all(f"${{{it}}}" in description for it in parameters)


def test_a_key_of_yours_encrypts_all_that_is_stored(any_stack: Stack) -> None:
    stack = any_stack.given(KmsKeyArn=KEY, AccessLogs="true")
    ours = {"Ref": "KmsKeyArn"}
    for name, table in stack.properties("AWS::DynamoDB::Table").items():
        encryption = {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": ours}
        assert table["SSESpecification"] == encryption, name
    for name, group in stack.properties("AWS::Logs::LogGroup").items():
        assert group["KmsKeyId"] == ours, name
    for name, topic in stack.properties("AWS::SNS::Topic").items():
        assert topic["KmsMasterKeyId"] == ours, name
    for bucket in stack.properties("AWS::S3::Bucket").values():
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        by_default = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": ours}
        assert rule == {"BucketKeyEnabled": True, "ServerSideEncryptionByDefault": by_default}


def test_a_role_uses_a_key_of_yours_through_the_services_that_it_writes_to(
    any_stack: Stack,
) -> None:
    stack = any_stack.given(
        KmsKeyArn=KEY, GitHubRepository="acme/gateway", GitHubOidcProviderArn=GITHUB
    )
    in_tables = {"kms:Decrypt", "kms:DescribeKey", "kms:Encrypt"}
    in_tables |= {"kms:GenerateDataKey*", "kms:ReEncrypt*"}
    in_bucket = {
        "s3:GetObject": "kms:Decrypt",
        "s3:PutObject": "kms:GenerateDataKey",
    }
    for name, role in stack.roles.items():
        found = {}
        objects: set[str] = set()
        for statement in statements(role):
            actions = statement["Action"]
            taken = {actions} if isinstance(actions, str) else set(actions)
            objects |= taken & set(in_bucket)
            if statement["Resource"] == {"Ref": "KmsKeyArn"}:
                ((operator, via),) = statement["Condition"].items()
                assert (operator, set(via)) == ("StringEquals", {"kms:ViaService"})
                found[via["kms:ViaService"]["Fn::Sub"].partition(".")[0]] = taken
        needed = {in_bucket[action] for action in objects}
        tables = {} if name == "ReaderRole" else {"dynamodb": in_tables}
        assert found == {**tables, **({"s3": needed} if needed else {})}, name


def test_the_policy_of_a_key_that_the_readme_shows_lets_each_service_use_it() -> None:
    page = (ROOT / "infra" / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(\[.*?\n\])\n```", page, re.DOTALL)
    granted = {it["Principal"]["Service"]: it for it in json.loads(block)}
    # Log groups and the topic are written by services of AWS, and no role of the stack.
    assert set(granted) == {"logs.REGION.amazonaws.com", "cloudwatch.amazonaws.com"}
    for service, statement in granted.items():
        assert {"kms:Decrypt", "kms:GenerateDataKey*"} <= set(statement["Action"]), service
        assert statement["Condition"], service


def test_c61_the_sweeper_alone_may_send_alerts_and_only_where_they_go(any_stack: Stack) -> None:
    rights = ("sns:", "secretsmanager:")
    sends = {
        "AlertTopicArn": {"sns:Publish"},
        "AlertWebhookSecretArn": {"secretsmanager:GetSecretValue"},
    }
    usual = compile_permissions(any_stack.given().roles["SweeperRole"])
    assert not any(action.startswith(rights) for actions in usual.values() for action in actions)
    for parameter, value in (("AlertTopicArn", TOPIC), ("AlertWebhookSecretArn", SECRET)):
        stack = any_stack.given(**{parameter: value})
        for name, role in stack.roles.items():
            before = any_stack.given().roles[name]
            added = {
                resource: actions
                for resource, actions in compile_permissions(role).items()
                if resource not in compile_permissions(before)
            }
            sender = name == "SweeperRole"
            assert added == ({parameter: sends[parameter]} if sender else {}), name


def test_c61_the_sweeper_alone_is_told_where_alerts_go(any_stack: Stack) -> None:
    told = {
        "TOLLGATE_ALERT_TOPIC_ARN": {"Ref": "AlertTopicArn"},
        "TOLLGATE_ALERT_WEBHOOK_URL": {"Ref": "AlertWebhookUrl"},
        "TOLLGATE_ALERT_WEBHOOK_SECRET": {"Ref": "AlertWebhookSecretArn"},
    }
    stack = any_stack.given()
    for name in stack.functions:
        variables = stack.environment(name)
        alerts = {key: value for key, value in variables.items() if "ALERT" in key}
        assert alerts == (told if name == "SweeperFunction" else {}), name
    assert {key.removeprefix("TOLLGATE_").lower() for key in told} <= set(Settings.model_fields)


def test_c61_a_webhook_is_https_has_a_secret_and_is_not_shown(any_stack: Stack) -> None:
    webhook = any_stack.parameters["AlertWebhookUrl"]
    assert webhook["NoEcho"] is True
    assert not re.search(webhook["AllowedPattern"], "http://hooks.example.com")
    assert re.search(webhook["AllowedPattern"], HOOK)
    secret = any_stack.parameters["AlertWebhookSecretArn"]["AllowedPattern"]
    assert re.search(secret, SECRET)
    assert not re.search(secret, SECRET.replace("AbCdEf", "*"))


def test_without_a_key_of_yours_aws_uses_its_own(stack: Stack) -> None:
    for name, table in stack.properties("AWS::DynamoDB::Table").items():
        assert "SSESpecification" not in table, name
    assert "KmsKeyArn" not in json.dumps(stack.template["Resources"])


def test_chat_may_have_limits_of_its_own(any_stack: Stack) -> None:
    asked = any_stack.given(ChatRequestsPerSecond="5", ChatRequestsBurst="9")
    assert throttles(asked) == {
        ("*", "*"): ("RequestsPerSecond", "RequestsBurst"),
        **{
            ("POST", path): ("ChatRequestsPerSecond", "ChatRequestsBurst")
            for path in STREAMING_PATHS
        },
    }


def test_a_snapshot_is_taken_of_published_versions_where_asked(any_stack: Stack) -> None:
    assert "SnapStart" not in any_stack.given().functions["ChatFunction"]
    asked = any_stack.given(ChatSnapStart="true")
    assert asked.functions["ChatFunction"]["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    assert {name for name, it in asked.functions.items() if "SnapStart" in it} == {"ChatFunction"}


def test_x_ray_traces_everything_or_nothing(any_stack: Stack) -> None:
    for asked, mode in (("false", "PassThrough"), ("true", "Active")):
        stack = any_stack.given(XRay=asked)
        (stage,) = stack.properties("AWS::ApiGateway::Stage").values()
        assert stage["TracingEnabled"] is (mode == "Active")
        for name, function in stack.functions.items():
            assert function["TracingConfig"] == {"Mode": mode}, name
        for name, role in stack.roles.items():
            writes = [
                it["Action"]
                for it in statements(role)
                if it["Resource"] == "*" and it["Action"] != "bedrock:ListModelInvocationJobs"
            ]
            allowed = [["xray:PutTelemetryRecords", "xray:PutTraceSegments"]]
            assert writes == (allowed if mode == "Active" else []), name


def test_spans_go_where_asked_with_headers_from_a_secret(any_stack: Stack) -> None:
    usual = any_stack.given()
    names = {"TOLLGATE_OTLP_ENDPOINT_URL", "TOLLGATE_OTLP_HEADERS_SECRET"}
    assert not any(names & set(usual.environment(function)) for function in usual.functions)
    asked = any_stack.given(OtlpEndpointUrl="https://collector.example", OtlpHeaders="true")
    environment = asked.environment("ChatFunction")
    assert environment["TOLLGATE_OTLP_ENDPOINT_URL"] == {"Ref": "OtlpEndpointUrl"}
    name = environment["TOLLGATE_OTLP_HEADERS_SECRET"]

    def secrets_of(stack: Stack) -> str:
        return json.dumps(statements(stack.roles["ChatRole"]))

    assert f":secret:{name}-??????" in secrets_of(asked)
    assert f":secret:{name}-" not in secrets_of(usual)


def test_the_spend_alarm_counts_dollars(any_stack: Stack) -> None:
    stack = any_stack.given(HourlySpendAlarmUsd="50")
    alarm = stack.properties("AWS::CloudWatch::Alarm")["SpendAlarm"]
    cost, dollars = alarm["Metrics"]
    assert cost["MetricStat"]["Metric"]["MetricName"] == "CostNanoUsd"
    assert (cost["MetricStat"]["Stat"], cost["MetricStat"]["Period"]) == ("Sum", 3600)
    assert dollars["Expression"] == f"{cost['Id']} / {NANO_USD_PER_USD}"
    assert alarm["Threshold"] == {"Ref": "HourlySpendAlarmUsd"}


def test_warm_environments_belong_to_the_alias_that_is_invoked(any_stack: Stack) -> None:
    def provisioned(stack: Stack) -> list[object]:
        aliases = stack.properties("AWS::Lambda::Alias")
        return [it.get("ProvisionedConcurrencyConfig") for it in aliases.values()]

    assert provisioned(any_stack.given()) == [None, None, None]
    asked = {"ProvisionedConcurrentExecutions": {"Ref": "ChatProvisionedConcurrency"}}
    assert asked in provisioned(any_stack.given(ChatProvisionedConcurrency="2"))


def test_access_logs_have_no_bodies_headers_or_query(any_stack: Stack) -> None:
    (plain,) = any_stack.given().properties("AWS::ApiGateway::Stage").values()
    assert "AccessLogSetting" not in plain
    stack = any_stack.given(AccessLogs="true")
    (stage,) = stack.properties("AWS::ApiGateway::Stage").values()
    line = json.loads(stage["AccessLogSetting"]["Format"])
    assert set(re.findall(r"\$context\.[\w.]+", json.dumps(line))) == set(line.values())
    for word in ("header", "body", "query", "authorizer", "apiKey", "identity.user"):
        assert word not in stage["AccessLogSetting"]["Format"]
    group = stack.properties("AWS::Logs::LogGroup")["AccessLogGroup"]
    assert group == {"RetentionInDays": {"Ref": "LogRetentionDays"}}


def test_a_stage_that_logs_waits_for_the_accounts_role(any_stack: Stack) -> None:
    (api,) = any_stack.resources("AWS::ApiGateway::RestApi").values()
    assert api["DependsOn"] == "ApiGatewayAccount"


def test_the_accounts_role_is_for_logs_and_outlives_the_stack(any_stack: Stack) -> None:
    stack = any_stack.given(ApiGatewayLogsRole="true")
    role = stack.template["Resources"]["ApiGatewayRole"]
    assert role["Properties"]["ManagedPolicyArns"] == [
        {
            "Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/service-role/"
            "AmazonAPIGatewayPushToCloudWatchLogs"
        }
    ]
    (statement,) = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "apigateway.amazonaws.com"}
    for name in ("ApiGatewayAccount", "ApiGatewayRole"):
        assert stack.template["Resources"][name]["DeletionPolicy"] == "Retain"


def test_c1_a_domain_has_both_prefixes(any_stack: Stack) -> None:
    stack = any_stack.given(DomainName="llm.example.com")
    mappings = stack.properties("AWS::ApiGateway::BasePathMapping").values()
    assert {it.get("BasePath") for it in mappings} == {None, "api"}
    domain = stack.properties("AWS::ApiGateway::DomainName")["Domain"]
    assert domain["EndpointConfiguration"] == {"Types": ["REGIONAL"]}
    assert domain["SecurityPolicy"] == "TLS_1_2"
    assert "DomainTarget" in stack.outputs


def test_half_an_option_is_refused_before_anything_is_made(any_stack: Stack) -> None:
    rules = any_stack.template["Rules"].values()
    needing = [rule for rule in rules if "Fn::Not" in rule["Assertions"][0]["Assert"]]
    pairs = {
        rule["RuleCondition"].get("Fn::Not", [rule["RuleCondition"]])[0]["Fn::Equals"][0][
            "Ref"
        ]: rule["Assertions"][0]["Assert"]["Fn::Not"][0]["Fn::Equals"][0]["Ref"]
        for rule in needing
    }
    assert pairs == {
        "AlertWebhookUrl": "AlertWebhookSecretArn",
        "ChatCapacity": "ManagedSubnetIds",
        "DomainName": "CertificateArn",
        "GitHubRepository": "GitHubOidcProviderArn",
        "MonthlyBudgetUsd": "AlarmEmail",
        "OtlpContent": "OtlpEndpointUrl",
        "OtlpHeaders": "OtlpEndpointUrl",
    }


def test_the_firewall_stands_before_the_stage(any_stack: Stack) -> None:
    stack = any_stack.given(WebAclArn="arn:aws:wafv2:x")
    (association,) = stack.properties("AWS::WAFv2::WebACLAssociation").values()
    assert association["ResourceArn"]["Fn::Sub"].endswith(
        "::/restapis/${Api}/stages/${ApiapiStage}"
    )


def test_the_budget_tells_at_four_fifths_and_at_the_whole(any_stack: Stack) -> None:
    stack = any_stack.given(MonthlyBudgetUsd="100", AlarmEmail="a@example.com")
    (budget,) = stack.properties("AWS::Budgets::Budget").values()
    told = budget["NotificationsWithSubscribers"]
    assert [it["Notification"]["Threshold"] for it in told] == [80, 100]
    assert budget["Budget"]["BudgetLimit"]["Amount"] == {"Ref": "MonthlyBudgetUsd"}


def test_c93_the_publisher_is_one_environment_of_one_repository(any_stack: Stack) -> None:
    given = any_stack.given(GitHubRepository="acme/gateway", GitHubOidcProviderArn=GITHUB)
    role = given.roles["PublishRole"]
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert trust["Principal"] == {"Federated": {"Ref": "GitHubOidcProviderArn"}}
    assert trust["Condition"] == {
        "StringEquals": {
            "token.actions.githubusercontent.com:aud": "sts.amazonaws.com",
            "token.actions.githubusercontent.com:sub": {
                "Fn::Sub": "repo:${GitHubRepository}:environment:routing-publish"
            },
        }
    }


def test_c93_the_publisher_may_publish_and_nothing_else(any_stack: Stack) -> None:
    given = any_stack.given(GitHubRepository="acme/gateway", GitHubOidcProviderArn=GITHUB)
    stack, read, written, catalogs = statements(given.roles["PublishRole"])
    assert stack["Action"] == ["cloudformation:DescribeStacks", "cloudformation:GetTemplate"]
    assert read["Action"] == ["dynamodb:GetItem", "dynamodb:Query"]
    assert read["Condition"] == {
        "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["CATALOG"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    # A publication puts rows of the catalog and one of the audit log in one transaction.
    assert written["Action"] == "dynamodb:PutItem"
    assert written["Condition"] == {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["CATALOG", "T#M#*"]},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    assert catalogs["Action"] == ["s3:GetObject", "s3:PutObject"]
    assert catalogs["Resource"] == {"Fn::Sub": "${ObjectsBucket.Arn}/catalogs/*"}


def test_c93_the_publisher_may_read_its_stack_by_name(any_stack: Stack) -> None:
    given = any_stack.given(GitHubRepository="acme/gateway", GitHubOidcProviderArn=GITHUB)
    stack, *_ = statements(given.roles["PublishRole"])
    # IAM decides a call by name for `stack/NAME/*`, and one by id for `stack/NAME/ID`.
    expected = "arn:${AWS::Partition}:cloudformation:${AWS::Region}:${AWS::AccountId}:stack"
    assert stack["Resource"] == {"Fn::Sub": f"{expected}/${{AWS::StackName}}/*"}
