"""The tests of the template, tested: each must fail on a template with the fault it is for."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pytest

from tests.infra import test_options as options
from tests.infra import test_roles as roles
from tests.infra import test_template as template
from tests.infra import test_watching as watching
from tests.infra.translation import JsonObject, Stack, load_template, translate
from tests.nightly import first

ABSENT: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault at one place of the source template, and the test that must fail for it."""

    at: str
    value: Any
    seen_by: Callable[[Stack], None]

    @property
    def seen_by_options(self) -> bool:
        """Whether the test decides the conditions itself."""
        return getattr(self.seen_by, "func", self.seen_by).__module__ == options.__name__


PATHS: Final = "Resources Api Properties DefinitionBody paths"
STREAMED: Final = f"{PATHS} /v1/chat/completions post x-amazon-apigateway-integration"
CHAT_STATEMENTS: Final = "Resources ChatRole Properties Policies 0 PolicyDocument Statement"
PROVIDER_STATEMENTS: Final = "Resources ChatRole Properties Policies 1 PolicyDocument Statement"
GATEWAY_ERRORS: Final = "Resources Api Properties GatewayResponses"
BODY: Final = "ResponseTemplates application/json"

streamed = template.test_c35_posts_to_every_format_are_streamed
allowed = roles.test_roles_allow_exactly_what_their_functions_do

FAULTS: Final = [
    Fault(at=f"{STREAMED} responseTransferMode", value="BUFFERED", seen_by=streamed),
    Fault(at=f"{STREAMED} responseTransferMode", value="RESPONSE_STREAM", seen_by=streamed),
    Fault(at=f"{STREAMED} responseTransferMode", value=ABSENT, seen_by=streamed),
    Fault(at=f"{STREAMED} timeoutInMillis", value=ABSENT, seen_by=streamed),
    Fault(at=f"{PATHS} /v1/completions", value=ABSENT, seen_by=streamed),
    Fault(
        at=f"{PATHS} / {template.ANY} x-amazon-apigateway-integration responseTransferMode",
        value="STREAM",
        seen_by=template.test_nothing_else_is_streamed,
    ),
    Fault(at=f"{PATHS} /", value=ABSENT, seen_by=template.test_every_route_has_its_function),
    Fault(
        at="Resources ChatFunction Properties Timeout",
        value=900,
        seen_by=template.test_c34_a_function_ends_before_its_integration_does,
    ),
    Fault(
        at="Resources Api Properties EndpointConfiguration",
        value=ABSENT,
        seen_by=template.test_c32_the_endpoint_is_regional,
    ),
    Fault(
        at="Resources Api Properties OpenApiVersion",
        value=ABSENT,
        seen_by=template.test_c1_the_only_stage_is_named_api,
    ),
    Fault(
        at="Resources Api Properties StageName",
        value="prod",
        seen_by=template.test_c1_the_only_stage_is_named_api,
    ),
    Fault(
        at="Outputs Secret",
        value={"Value": "{{resolve:secretsmanager:tollgate/openai}}"},
        seen_by=template.test_the_outputs_are_the_base_url_and_where_things_are_kept,
    ),
    Fault(
        at=f"{GATEWAY_ERRORS} THROTTLED {BODY}",
        value='{"error": {"message": "slow down"}}',
        seen_by=template.test_c40_the_gateways_own_errors_have_the_envelope,
    ),
    Fault(
        at=f"{GATEWAY_ERRORS} DEFAULT_4XX StatusCode",
        value=400,
        seen_by=template.test_c41_the_gateways_own_errors_have_status_and_code,
    ),
    Fault(
        at=f"{GATEWAY_ERRORS} REQUEST_TOO_LARGE ResponseParameters",
        value={"Headers": {"Access-Control-Allow-Origin": "'https://one.example'"}},
        seen_by=template.test_c4_c45_the_gateways_own_errors_have_an_id_and_reach_a_browser,
    ),
    Fault(
        at=f"{GATEWAY_ERRORS} THROTTLED ResponseParameters Headers Retry-After",
        value="'0'",
        seen_by=template.test_c43_a_throttled_caller_is_told_when_to_come_back,
    ),
    Fault(
        at=f"{GATEWAY_ERRORS} INVALID_SIGNATURE {BODY}",
        value='{"error": {"message": $context.error.messageString}}',
        seen_by=template.test_c44_no_gateway_error_repeats_what_the_caller_sent,
    ),
    Fault(
        at="Resources ApiFunction Properties Architectures",
        value=["x86_64"],
        seen_by=template.test_every_function_is_python_3_13_on_arm64,
    ),
    Fault(
        at="Globals Function Environment Variables AWS_LAMBDA_EXEC_WRAPPER",
        value="/var/task/stream_bootstrap",
        seen_by=template.test_only_chat_runs_under_our_runtime,
    ),
    Fault(
        at="Resources ApiFunction Properties AutoPublishAlias",
        value=ABSENT,
        seen_by=template.test_the_data_paths_are_served_by_aliases,
    ),
    Fault(
        at="Resources ChatFunction Properties VersionDescription",
        value={"Fn::Sub": "in ${AWS::Region}"},
        seen_by=template.test_a_changed_parameter_publishes_a_version,
    ),
    Fault(
        at="Resources ApiFunction Properties VersionDescription",
        value={"Fn::Sub": "origins: ${AllowedOrigins}"},
        seen_by=template.test_a_changed_parameter_publishes_a_version,
    ),
    Fault(
        at="Resources SweeperFunction Properties Timeout",
        value=300,
        seen_by=template.test_scheduled_functions_end_before_they_run_again,
    ),
    Fault(
        at="Resources SweeperFunction Properties LoggingConfig LogGroup",
        value={"Ref": "ApiLogs"},
        seen_by=template.test_every_function_logs_json_to_a_group_that_forgets,
    ),
    Fault(
        at="Resources ChatLogs Properties RetentionInDays",
        value=ABSENT,
        seen_by=template.test_every_function_logs_json_to_a_group_that_forgets,
    ),
    Fault(
        at="Resources LedgerTable Properties BillingMode",
        value="PROVISIONED",
        seen_by=template.test_tables_are_on_demand_and_have_one_shape,
    ),
    Fault(
        at="Resources LedgerTable Properties PointInTimeRecoverySpecification",
        value=ABSENT,
        seen_by=template.test_c64_money_keys_and_records_can_be_restored_to_a_point_in_time,
    ),
    Fault(
        at="Resources GenerationsTable Properties PointInTimeRecoverySpecification",
        value=ABSENT,
        seen_by=template.test_c64_money_keys_and_records_can_be_restored_to_a_point_in_time,
    ),
    Fault(
        at="Resources ObjectsBucketPolicy Properties PolicyDocument Statement 0 Condition",
        value={"Bool": {"aws:SecureTransport": "true"}},
        seen_by=template.test_the_bucket_refuses_what_is_not_encrypted_on_its_way,
    ),
    Fault(
        at="Resources LedgerTable Properties TimeToLiveSpecification",
        value=ABSENT,
        seen_by=template.test_the_tables_delete_what_has_expired,
    ),
    Fault(
        at="Resources GenerationsTable UpdateReplacePolicy",
        value=ABSENT,
        seen_by=template.test_what_holds_data_outlives_the_stack,
    ),
    Fault(
        at="Resources CoreTable Properties TableName",
        value="core",
        seen_by=template.test_nothing_has_a_fixed_name,
    ),
    Fault(
        at="Resources SweeperFunction Properties Role",
        value={"Fn::GetAtt": ["ApiRole", "Arn"]},
        seen_by=roles.test_every_function_has_a_role_of_its_own,
    ),
    Fault(at=f"{PROVIDER_STATEMENTS} 3 Resource", value="*", seen_by=allowed),
    Fault(at=f"{CHAT_STATEMENTS} 2 Condition Null", value=ABSENT, seen_by=allowed),
    Fault(at=f"{CHAT_STATEMENTS} 2 Action", value="dynamodb:*", seen_by=allowed),
    Fault(at=f"{CHAT_STATEMENTS} 0 NotAction", value="iam:*", seen_by=allowed),
    # Without a stated role SAM makes one that may write every log group of the account.
    Fault(
        at="Resources ApiFunction Properties Role",
        value=ABSENT,
        seen_by=roles.test_roles_get_nothing_by_other_ways,
    ),
    Fault(
        at="Resources ApiRole Properties AssumeRolePolicyDocument Statement 0 Principal",
        value={"AWS": "*"},
        seen_by=roles.test_only_lambda_assumes_the_roles,
    ),
    Fault(
        at=f"{PROVIDER_STATEMENTS} 3 Resource",
        value={"Fn::Sub": "arn:${AWS::Partition}:secretsmanager:*:*:secret:*"},
        seen_by=roles.test_the_catalog_needs_no_wildcard_but_the_regions_of_a_profile,
    ),
    Fault(
        at="Resources Api Properties MethodSettings",
        value=ABSENT,
        seen_by=watching.test_every_route_is_throttled_and_chat_by_itself,
    ),
    Fault(
        at="Resources Api Properties MethodSettings 1 ResourcePath",
        value="/v1/chat/completions",
        seen_by=watching.test_every_route_is_throttled_and_chat_by_itself,
    ),
    Fault(
        at="Resources ChatThrottlesAlarm Properties AlarmActions",
        value=ABSENT,
        seen_by=watching.test_every_alarm_is_told_when_it_starts_and_ends_and_silence_is_well,
    ),
    Fault(
        at="Resources OldHoldsAlarm Properties TreatMissingData",
        value="breaching",
        seen_by=watching.test_every_alarm_is_told_when_it_starts_and_ends_and_silence_is_well,
    ),
    Fault(
        at="Resources ProvidersFailedAlarm Properties MetricName",
        value="ProvidersDown",
        seen_by=watching.test_an_alarm_counts_only_metrics_that_somebody_sends,
    ),
    Fault(
        at="Resources UnsettledAlarm Properties Dimensions",
        value=[{"Name": "service", "Value": "sweeper"}],
        seen_by=watching.test_an_alarm_counts_only_metrics_that_somebody_sends,
    ),
    Fault(
        at="Resources Dashboard Properties DashboardBody",
        value={"Fn::Sub": '{"widgets": []}'},
        seen_by=watching.test_the_dashboard_shows_metrics_that_exist,
    ),
    Fault(
        at="Resources ApiGatewayAccount Condition",
        value=ABSENT,
        seen_by=partial(
            options.test_an_option_adds_what_it_says_and_is_off_by_default, "account role"
        ),
    ),
    Fault(
        at="Resources Api Properties AccessLogSetting Fn::If 1 Format",
        value='{"key": "$context.identity.apiKey"}',
        seen_by=options.test_access_logs_have_no_bodies_headers_or_query,
    ),
    *(
        Fault(at=at, value=ABSENT, seen_by=options.test_a_key_of_yours_encrypts_all_that_is_stored)
        for at in (
            "Resources LedgerTable Properties SSESpecification",
            "Resources ChatLogs Properties KmsKeyId",
            "Resources AlarmTopic Properties KmsMasterKeyId",
            "Resources ObjectsBucket Properties BucketEncryption",
        )
    ),
    Fault(
        at=f"{CHAT_STATEMENTS} 4 Fn::If 1 Action",
        value="kms:Decrypt",
        seen_by=options.test_a_role_uses_a_key_of_yours_through_the_services_that_it_writes_to,
    ),
    Fault(
        at="Resources DomainUnderApi Properties BasePath",
        value=ABSENT,
        seen_by=options.test_c1_a_domain_has_both_prefixes,
    ),
    Fault(
        at="Rules BudgetHasReader",
        value=ABSENT,
        seen_by=options.test_half_an_option_is_refused_before_anything_is_made,
    ),
]


def with_fault(fault: Fault) -> JsonObject:
    source = load_template()
    *parents, last = fault.at.split(" ")
    place: Any = source
    for step in parents:
        place = place[int(step) if isinstance(place, list) else step]
    if fault.value is ABSENT:
        del place[last]
    else:
        place[last] = fault.value
    return source


def described(fault: Fault) -> str:
    return f"{fault.at}={'absent' if fault.value is ABSENT else fault.value}"


@pytest.mark.parametrize("fault", first(8, FAULTS), ids=described)
def test_a_fault_in_the_template_is_seen(fault: Fault) -> None:
    stack = translate(with_fault(fault))
    if not fault.seen_by_options:
        stack = stack.given()
    with pytest.raises((AssertionError, KeyError)):
        fault.seen_by(stack)
