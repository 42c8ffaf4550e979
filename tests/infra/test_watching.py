"""Throttling, alarms, metrics out of logs, and the dashboard."""

import ast
import json
import re
from typing import Any, Final

from tests.infra.translation import FUNCTIONS, ROOT, Stack
from tollgate.core.errors import ErrorCode

NAMESPACE: Final = {"Fn::Sub": "Tollgate/${AWS::StackName}"}
CHAT: Final = [{"Name": "FunctionName", "Value": {"Ref": "ChatFunction"}}]
SWEEPER: Final = [{"Name": "FunctionName", "Value": {"Ref": "SweeperFunction"}}]
STAGE: Final = [
    {"Name": "ApiName", "Value": {"Ref": "AWS::StackName"}},
    {"Name": "Stage", "Value": {"Ref": "ApiapiStage"}},
]
OF_THE_SWEEPER: Final = [{"Name": "service", "Value": "sweeper"}]
# Metrics that AWS keeps: "Amazon API Gateway dimensions and metrics" and "Types of metrics for
# Lambda functions", 2026-11-21.
OF_AWS: Final = {
    ("AWS/ApiGateway", "Count"),
    ("AWS/ApiGateway", "4XXError"),
    ("AWS/ApiGateway", "5XXError"),
    ("AWS/Lambda", "ConcurrentExecutions"),
    ("AWS/Lambda", "Duration"),
    ("AWS/Lambda", "Errors"),
    ("AWS/Lambda", "Throttles"),
}


def strings_in(path: str) -> set[str]:
    tree = ast.parse((FUNCTIONS / path).read_text())
    return {
        it.value for it in ast.walk(tree) if isinstance(it, ast.Constant) and type(it.value) is str
    }


def filters(stack: Stack) -> dict[str, tuple[str, dict[str, Any]]]:
    """Pattern and transformation by metric name."""
    found = {}
    for it in stack.properties("AWS::Logs::MetricFilter").values():
        (transformation,) = it["MetricTransformations"]
        assert it["LogGroupName"] == {"Ref": "ChatLogs"}
        assert transformation["MetricNamespace"] == NAMESPACE
        found[transformation["MetricName"]] = (it["FilterPattern"], transformation)
    return found


def metrics_of_ours(stack: Stack) -> set[str]:
    return set(filters(stack)) | {
        "AuditDifference",
        "HoldsFound",
        "HoldsSettled",
        "OldestHoldAge",
    }


def test_the_stage_is_throttled(stack: Stack) -> None:
    (stage,) = stack.properties("AWS::ApiGateway::Stage").values()
    assert stage["MethodSettings"] == [
        {
            "ResourcePath": "/*",
            "HttpMethod": "*",
            "ThrottlingRateLimit": {"Ref": "RequestsPerSecond"},
            "ThrottlingBurstLimit": {"Ref": "RequestsBurst"},
        }
    ]
    assert stack.parameters["RequestsPerSecond"]["Default"] == 100
    assert stack.parameters["RequestsBurst"]["Default"] == 200


def test_each_alarm_watches_what_it_names(stack: Stack) -> None:
    found = {
        name: (it["Namespace"], it["MetricName"], it.get("Dimensions"), it["Threshold"])
        for name, it in stack.properties("AWS::CloudWatch::Alarm").items()
    }
    assert found == {
        "ServerErrorsAlarm": ("AWS/ApiGateway", "5XXError", STAGE, 5),
        "ChatThrottlesAlarm": ("AWS/Lambda", "Throttles", CHAT, 1),
        "ChatDurationAlarm": ("AWS/Lambda", "Duration", CHAT, 800_000),
        "ProvidersFailedAlarm": (NAMESPACE, "ProvidersFailed", None, 5),
        "UnsettledAlarm": (NAMESPACE, "Unsettled", None, 1),
        "SweeperErrorsAlarm": ("AWS/Lambda", "Errors", SWEEPER, 1),
        "OldHoldsAlarm": (NAMESPACE, "OldestHoldAge", OF_THE_SWEEPER, 3600),
        "AuditAlarm": (NAMESPACE, "AuditDifference", OF_THE_SWEEPER, 0),
        "LostGenerationsAlarm": (NAMESPACE, "HoldsSettled", OF_THE_SWEEPER, 10),
    }


def test_every_alarm_is_told_when_it_starts_and_ends_and_silence_is_well(stack: Stack) -> None:
    for name, alarm in stack.properties("AWS::CloudWatch::Alarm").items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [{"Ref": "AlarmTopic"}], name
        # An idle stack sends no metrics, and is well.
        assert alarm["TreatMissingData"] == "notBreaching", name
        assert alarm["AlarmDescription"], name


def test_an_alarm_counts_only_metrics_that_somebody_sends(stack: Stack) -> None:
    for name, alarm in stack.properties("AWS::CloudWatch::Alarm").items():
        if alarm["Namespace"] == NAMESPACE:
            assert alarm["MetricName"] in metrics_of_ours(stack), name
        else:
            assert (alarm["Namespace"], alarm["MetricName"]) in OF_AWS, name


def test_the_sweepers_metrics_are_those_it_sends_where_it_is_told(stack: Stack) -> None:
    assert {"HoldsFound", "HoldsSettled", "OldestHoldAge", "sweeper"} <= strings_in("sweeper.py")
    for function in stack.functions:
        assert stack.environment(function)["TOLLGATE_METRICS_NAMESPACE"] == NAMESPACE


def test_the_log_has_the_fields_that_metrics_are_made_of(stack: Stack) -> None:
    written = strings_in("tollgate/observability/log.py")
    for pattern, transformation in filters(stack).values():
        fields = re.findall(r"\$\.(\w+)", pattern + transformation["MetricValue"])
        assert set(fields) <= written, pattern
        (message,) = re.findall(r'\$\.message = "([^"]+)"', pattern)
        assert message in written, pattern


def test_the_pattern_of_failed_providers_is_how_their_codes_begin(stack: Stack) -> None:
    pattern, _ = filters(stack)["ProvidersFailed"]
    assert '$.error = "provider_*"' in pattern
    assert len([it for it in ErrorCode if it.startswith("provider_")]) == 5


def test_the_dashboard_shows_metrics_that_exist(stack: Stack) -> None:
    (dashboard,) = stack.properties("AWS::CloudWatch::Dashboard").values()
    body = json.loads(dashboard["DashboardBody"]["Fn::Sub"])
    shown = [metric for widget in body["widgets"] for metric in widget["properties"]["metrics"]]
    assert len(shown) >= 12
    for namespace, name, *_ in shown:
        if namespace == NAMESPACE["Fn::Sub"]:
            assert name in metrics_of_ours(stack)
        else:
            assert (namespace, name) in OF_AWS
    for widget in body["widgets"]:
        assert widget["properties"]["region"] == "${AWS::Region}"


def test_the_dashboard_refers_to_this_stack_only(stack: Stack) -> None:
    (dashboard,) = stack.properties("AWS::CloudWatch::Dashboard").values()
    references = set(re.findall(r"\$\{([^}]+)\}", dashboard["DashboardBody"]["Fn::Sub"]))
    known = {"AWS::Region", "AWS::StackName"} | set(stack.template["Resources"])
    assert references <= known


def test_deployments_are_tagged() -> None:
    config = (ROOT / "samconfig.toml").read_text()
    assert 'tags = "app=tollgate env=default"' in config
    assert 'tags = "app=tollgate env=prod"' in config
