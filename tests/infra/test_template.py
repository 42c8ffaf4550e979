"""The promises of infra/template.yaml, read from the translated document.

Keeps C1, C4, C32, C34, C35, C40, C41, C43, C44, C45, C64.
"""

import json
import re

from tests.infra.test_roles import PERMISSIONS
from tests.infra.translation import JsonObject, Stack
from tollgate.core.clock import DAY_S
from tollgate.core.errors import ErrorCode
from tollgate.ingress.formats import CHAT_COMPLETIONS
from tollgate.settings import Settings
from tollgate.stores.rules.key_settings import CONTENT_DAYS
from tollgate.web.files.file_shapes import EXPIRES_MAX_S
from tollgate.web.http.paths import STREAMING_PATHS

CHAT_PATH = CHAT_COMPLETIONS.path
ANY = "x-amazon-apigateway-any-method"

# Contract C42.
ERROR_TYPES = {
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "insufficient_quota",
    "rate_limit_error",
    "not_found_error",
    "server_error",
}


def gateway_errors(stack: Stack) -> dict[str, JsonObject]:
    return stack.api_definition["x-amazon-apigateway-gateway-responses"]


def gateway_error_body(response: JsonObject) -> JsonObject:
    return json.loads(response["responseTemplates"]["application/json"])["error"]


def test_every_route_has_its_function(stack: Stack) -> None:
    assert {(route.path, route.method): route.function for route in stack.routes()} == {
        **{(path, "post"): "ChatFunctionAliaslive" for path in STREAMING_PATHS},
        **{(path, ANY): "ApiFunctionAliaslive" for path in STREAMING_PATHS},
        ("/", ANY): "ApiFunctionAliaslive",
        ("/{proxy+}", ANY): "ApiFunctionAliaslive",
        ("/.well-known/oauth-authorization-server", ANY): "LoginFunctionAliaslive",
        ("/device", ANY): "LoginFunctionAliaslive",
        ("/oauth/{proxy+}", ANY): "LoginFunctionAliaslive",
        ("/v1/session", ANY): "LoginFunctionAliaslive",
    }


def test_c35_posts_to_every_format_are_streamed(stack: Stack) -> None:
    posted = [it for it in stack.routes() if it.path in STREAMING_PATHS and it.method == "post"]
    assert len(posted) == len(STREAMING_PATHS)
    for route in posted:
        uri = route.uri[0]
        assert route.integration["responseTransferMode"] == "STREAM"
        assert "/2021-11-15/functions/" in uri
        assert uri.endswith("/response-streaming-invocations")
        assert route.integration["timeoutInMillis"] == 900_000


def test_nothing_else_is_streamed(stack: Stack) -> None:
    for route in stack.routes():
        if route.path not in STREAMING_PATHS or route.method != "post":
            assert "responseTransferMode" not in route.integration, route
            assert "timeoutInMillis" not in route.integration, route
            assert "/2015-03-31/functions/" in route.uri[0], route


def test_c34_a_function_ends_before_its_integration_does(stack: Stack) -> None:
    assert stack.functions["ChatFunction"]["Timeout"] == 885
    assert stack.functions["ApiFunction"]["Timeout"] <= 29


def test_c32_the_endpoint_is_regional(stack: Stack) -> None:
    (api,) = stack.properties("AWS::ApiGateway::RestApi").values()
    assert api["EndpointConfiguration"] == {"Types": ["REGIONAL"]}


def test_c1_the_only_stage_is_named_api(stack: Stack) -> None:
    (stage,) = stack.properties("AWS::ApiGateway::Stage").values()
    (deployment,) = stack.properties("AWS::ApiGateway::Deployment").values()
    assert stage["StageName"] == "api"
    # SAM's own "Stage" hides here.
    assert "StageName" not in deployment


def test_the_outputs_are_the_base_url_and_where_things_are_kept(stack: Stack) -> None:
    assert {name: output["Value"] for name, output in stack.outputs.items()} == {
        "ApiUrl": {"Fn::Sub": "https://${Api}.execute-api.${AWS::Region}.${AWS::URLSuffix}/api/v1"},
        "CoreTableName": {"Ref": "CoreTable"},
        "LedgerTableName": {"Ref": "LedgerTable"},
        "GenerationsTableName": {"Ref": "GenerationsTable"},
        "ObjectsBucketName": {"Ref": "ObjectsBucket"},
        "SecretsKeyArn": {"Fn::GetAtt": ["SecretsKey", "Arn"]},
        "BedrockBatchRoleArn": {"Fn::GetAtt": ["BedrockBatchRole", "Arn"]},
    }


def test_c40_the_gateways_own_errors_have_the_envelope(stack: Stack) -> None:
    for name, response in gateway_errors(stack).items():
        error = gateway_error_body(response)
        assert set(error) == {"message", "type", "code", "param", "request_id"}, name
        assert error["type"] in ERROR_TYPES, name
        assert error["param"] is None, name
        assert error["request_id"] == "$context.requestId", name


def test_c41_the_gateways_own_errors_have_status_and_code(stack: Stack) -> None:
    found = {
        name: (response.get("statusCode"), gateway_error_body(response)["code"])
        for name, response in gateway_errors(stack).items()
    }
    assert {code for _, code in found.values()} <= set(ErrorCode)
    # A default's status replaces that of every error without a response of its own.
    assert found == {
        "DEFAULT_4XX": (None, "invalid_request"),
        "DEFAULT_5XX": ("503", "service_unavailable"),
        "INTEGRATION_FAILURE": ("503", "service_unavailable"),
        "MISSING_AUTHENTICATION_TOKEN": ("404", "not_found"),
        "INVALID_SIGNATURE": ("404", "not_found"),
        "REQUEST_TOO_LARGE": ("413", "payload_too_large"),
        "THROTTLED": ("429", "rate_limit_exceeded"),
        "INTEGRATION_TIMEOUT": ("504", "provider_timeout"),
    }


def test_c4_c45_the_gateways_own_errors_have_an_id_and_reach_a_browser(stack: Stack) -> None:
    for name, response in gateway_errors(stack).items():
        headers = response["responseParameters"]
        assert headers["gatewayresponse.header.Access-Control-Allow-Origin"] == "'*'", name
        assert headers["gatewayresponse.header.x-request-id"] == "context.requestId", name


def test_c43_a_throttled_caller_is_told_when_to_come_back(stack: Stack) -> None:
    waited_for = {
        name: response["responseParameters"]["gatewayresponse.header.Retry-After"]
        for name, response in gateway_errors(stack).items()
        if response.get("statusCode") in ("429", "503")
    }
    assert waited_for == dict.fromkeys(("DEFAULT_5XX", "INTEGRATION_FAILURE", "THROTTLED"), "'1'")


def test_c44_no_gateway_error_repeats_what_the_caller_sent(stack: Stack) -> None:
    for name, response in gateway_errors(stack).items():
        assert "context.error" not in json.dumps(response), name
        assert "method.request" not in json.dumps(response), name


def test_every_function_is_python_3_13_on_arm64(stack: Stack) -> None:
    assert set(stack.functions) == {
        "ChatFunction",
        "ApiFunction",
        "SweeperFunction",
        "BatchFunction",
        "RollupFunction",
        "ReaderFunction",
        "LoginFunction",
    }
    for name, function in stack.functions.items():
        assert function["Runtime"] == "python3.13", name
        assert function["Architectures"] == ["arm64"], name


def test_only_chat_runs_under_our_runtime(stack: Stack) -> None:
    wrapper = "AWS_LAMBDA_EXEC_WRAPPER"
    assert stack.environment("ChatFunction")[wrapper] == "/var/task/stream_bootstrap"
    for name in stack.functions.keys() - {"ChatFunction"}:
        assert wrapper not in stack.environment(name)


def test_memory_is_a_parameter(stack: Stack) -> None:
    memory = {
        name: stack.parameters[it["MemorySize"]["Ref"]]["Default"]
        for name, it in stack.functions.items()
        if isinstance(it["MemorySize"], dict)
    }
    # Decision 212.
    assert memory == {"ChatFunction": 512, "ApiFunction": 1024}


def test_the_data_paths_are_served_by_aliases(stack: Stack) -> None:
    aliases = stack.properties("AWS::Lambda::Alias")
    assert {alias["FunctionName"]["Ref"]: alias["Name"] for alias in aliases.values()} == {
        "ChatFunction": "live",
        "ApiFunction": "live",
        "LoginFunction": "live",
    }


# The template writes these parameters as one character each.
MARKS = r"\$\{(BedrockSessions|OtlpContent|ReaderTenantIsolation)\}"


def test_a_changed_parameter_publishes_a_version(stack: Stack) -> None:
    for name, description in stack.descriptions().items():
        function = stack.functions[name]
        published = {**function["Environment"]["Variables"], "memory": function["MemorySize"]}
        references = set(re.findall(r"'Ref': '(\w+)'", str(list(published.values()))))
        for parameter in references & set(stack.parameters):
            assert f"${{{parameter}}}" in description, name
        marked = re.sub(MARKS, "x", description)
        assert _longest(marked, stack) <= 256, "what Lambda takes"


def _longest(description: str, stack: Stack) -> int:
    def value(found: re.Match[str]) -> str:
        parameter = stack.parameters[found[1]]
        values = parameter.get("AllowedValues") or [str(parameter.get("MaxValue", ""))]
        longest = max(map(len, values))
        return "x" * parameter.get("MaxLength", longest)

    return len(re.sub(r"\$\{(\w+)\}", value, description))


def test_the_sweeper_runs_alone_every_five_minutes_and_audits_at_night(stack: Stack) -> None:
    rules = [
        rule
        for rule in stack.properties("AWS::Events::Rule").values()
        if rule["Targets"][0]["Arn"] == {"Fn::GetAtt": ["SweeperFunction", "Arn"]}
    ]
    often, nightly, hooks = rules
    assert often["ScheduleExpression"] == "rate(5 minutes)"
    assert "Input" not in often["Targets"][0]
    assert hooks["ScheduleExpression"] == "rate(5 minutes)"
    assert hooks["Targets"][0]["Input"] == '{"task": "webhooks"}'
    assert nightly["ScheduleExpression"].startswith("cron(")
    assert nightly["Targets"][0]["Input"] == '{"task": "audit"}'


def test_days_are_added_up_every_hour(stack: Stack) -> None:
    (rule,) = [
        rule
        for rule in stack.properties("AWS::Events::Rule").values()
        if rule["Targets"][0]["Arn"] == {"Fn::GetAtt": ["RollupFunction", "Arn"]}
    ]
    assert rule["ScheduleExpression"] == "rate(1 hour)"


def test_scheduled_functions_are_not_tried_again(stack: Stack) -> None:
    retries = {
        config["FunctionName"]["Ref"]: config["MaximumRetryAttempts"]
        for config in stack.properties("AWS::Lambda::EventInvokeConfig").values()
    }
    assert retries == {"SweeperFunction": 0, "RollupFunction": 0}


def test_scheduled_functions_end_before_they_run_again(stack: Stack) -> None:
    assert stack.functions["SweeperFunction"]["Timeout"] < 300
    assert stack.functions["RollupFunction"]["Timeout"] < 3600


def test_c64_any_difference_that_the_audit_finds_alarms(stack: Stack) -> None:
    alarm = stack.properties("AWS::CloudWatch::Alarm")["AuditAlarm"]
    assert alarm["MetricName"] == "AuditDifference"
    assert alarm["Dimensions"] == [{"Name": "service", "Value": "sweeper"}]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)


def test_every_function_logs_json_to_a_group_that_forgets(stack: Stack) -> None:
    groups = stack.properties("AWS::Logs::LogGroup")
    used = {function["LoggingConfig"]["LogGroup"]["Ref"] for function in stack.functions.values()}
    assert used == set(groups)
    assert len(used) == len(stack.functions)
    for function in stack.functions.values():
        assert function["LoggingConfig"]["LogFormat"] == "JSON"
    for group in groups.values():
        assert group == {"RetentionInDays": {"Ref": "LogRetentionDays"}}
    assert stack.parameters["LogRetentionDays"]["Default"] == 30


def test_tables_are_on_demand_and_have_one_shape(stack: Stack) -> None:
    tables = stack.properties("AWS::DynamoDB::Table")
    assert set(tables) == {"CoreTable", "LedgerTable", "GenerationsTable"}
    for name, table in tables.items():
        assert table["BillingMode"] == "PAY_PER_REQUEST", name
        assert table["KeySchema"] == [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ], name
        assert table["AttributeDefinitions"] == [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ], name


def test_c64_money_keys_and_records_can_be_restored_to_a_point_in_time(stack: Stack) -> None:
    recoverable = {
        name
        for name, table in stack.properties("AWS::DynamoDB::Table").items()
        if table.get("PointInTimeRecoverySpecification") == {"PointInTimeRecoveryEnabled": True}
    }
    assert recoverable == {"CoreTable", "LedgerTable", "GenerationsTable"}


def test_the_bucket_refuses_what_is_not_encrypted_on_its_way(stack: Stack) -> None:
    (policy,) = stack.resources("AWS::S3::BucketPolicy").values()
    (refusal,) = policy["Properties"]["PolicyDocument"]["Statement"]
    assert policy["Properties"]["Bucket"] == {"Ref": "ObjectsBucket"}
    assert refusal == {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [
            {"Fn::GetAtt": ["ObjectsBucket", "Arn"]},
            {"Fn::Sub": "${ObjectsBucket.Arn}/*"},
        ],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    # The bucket stays, and so does what protects it.
    bucket = stack.template["Resources"]["ObjectsBucket"]
    assert policy["DeletionPolicy"] == bucket["DeletionPolicy"]


def test_the_tables_delete_what_has_expired(stack: Stack) -> None:
    expiring = {
        name: table["TimeToLiveSpecification"]
        for name, table in stack.properties("AWS::DynamoDB::Table").items()
        if "TimeToLiveSpecification" in table
    }
    ttl = {"AttributeName": "ttl", "Enabled": True}
    assert expiring == dict.fromkeys(("CoreTable", "LedgerTable", "GenerationsTable"), ttl)


def test_records_are_kept_as_long_as_the_parameter_says(stack: Stack) -> None:
    parameter = stack.parameters["RecordRetentionDays"]
    (least, most) = Settings.model_fields["record_days"].metadata
    assert Settings().record_days == parameter["Default"] == 30
    assert (parameter["MinValue"], parameter["MaxValue"]) == (least.ge, most.le)
    writers = {name for name, it in PERMISSIONS.items() if writes_records(it)}
    told = {
        stack.functions[name]["Role"]["Fn::GetAtt"][0]
        for name in stack.functions
        if stack.environment(name).get("TOLLGATE_RECORD_DAYS") == {"Ref": "RecordRetentionDays"}
    }
    assert told == writers | {"RollupRole"}


def writes_records(permissions: dict[str, set[str]]) -> bool:
    return "dynamodb:PutItem" in permissions.get("GenerationsTable", set())


def test_c68_c69_answers_and_content_expire_when_they_should(stack: Stack) -> None:
    [bucket] = stack.properties("AWS::S3::Bucket").values()
    rules = bucket["LifecycleConfiguration"]["Rules"]
    joined = [rule for rule in rules if "AbortIncompleteMultipartUpload" in rule]
    assert [(it["Prefix"], it["AbortIncompleteMultipartUpload"]) for it in joined] == [
        ("files/", {"DaysAfterInitiation": 1})
    ]
    expiring = [rule for rule in rules if rule not in joined]
    assert {rule["Prefix"]: rule["ExpirationInDays"] for rule in expiring} == {
        "answers/": 2,
        "batches/": 31,
        **{f"content/{days}d/": days for days in CONTENT_DAYS},
        **{f"responses/{days}d/": days for days in CONTENT_DAYS},
        "uploads/": 1,
        "reading/": 1,
        # A day after the last second at which a file may expire.
        "files/expiring/": EXPIRES_MAX_S // DAY_S + 1,
    }
    assert all(rule["Status"] == "Enabled" for rule in rules)


def test_c70_pages_may_send_files_to_the_bucket(stack: Stack) -> None:
    [bucket] = stack.properties("AWS::S3::Bucket").values()
    [rule] = bucket["CorsConfiguration"]["CorsRules"]
    # As of the API itself; an address without a signature is refused all the same.
    assert rule["AllowedOrigins"] == {"Fn::Split": [",", {"Ref": "AllowedOrigins"}]}
    assert rule["AllowedMethods"] == ["GET", "PUT"]
    # A signed address names these; a browser sends the length by itself.
    assert rule["AllowedHeaders"] == ["content-type", "if-none-match"]


def test_what_holds_data_outlives_the_stack(stack: Stack) -> None:
    for kind in ("AWS::DynamoDB::Table", "AWS::S3::Bucket"):
        for name, resource in stack.resources(kind).items():
            assert resource["DeletionPolicy"] == "RetainExceptOnCreate", name
            assert resource["UpdateReplacePolicy"] == "Retain", name
    for name, table in stack.resources("AWS::DynamoDB::Table").items():
        protection = table["Properties"]["DeletionProtectionEnabled"]
        assert protection == {"Ref": "TableDeletionProtection"}, name
    assert stack.parameters["TableDeletionProtection"]["Default"] == "true"


def test_nothing_has_a_fixed_name(stack: Stack) -> None:
    names = {
        "AWS::DynamoDB::Table": "TableName",
        "AWS::IAM::Role": "RoleName",
        "AWS::Lambda::Function": "FunctionName",
        "AWS::Logs::LogGroup": "LogGroupName",
        "AWS::Events::Rule": "Name",
    }
    for kind, name in names.items():
        for logical_id, properties in stack.properties(kind).items():
            assert name not in properties, logical_id
