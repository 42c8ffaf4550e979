"""Throttling, alarms, metrics out of logs, and the dashboard."""

import ast
import json
import re
from typing import Any, Final

from msgspec.structs import replace

from tests.clocks import FixedClock
from tests.infra.translation import FUNCTIONS, ROOT, JsonObject, Stack
from tests.unit.ingress.samples import RECORD
from tollgate.observability import emf
from tollgate.observability.emf import EmbeddedMetrics
from tollgate.observability.log import canonical_line
from tollgate.web.http.paths import STREAMING_PATHS

NAMESPACE: Final = {"Fn::Sub": "Tollgate/${AWS::StackName}"}
CHAT: Final = [{"Name": "FunctionName", "Value": {"Ref": "ChatFunction"}}]
SWEEPER: Final = [{"Name": "FunctionName", "Value": {"Ref": "SweeperFunction"}}]
STAGE: Final = [
    {"Name": "ApiName", "Value": {"Ref": "AWS::StackName"}},
    {"Name": "Stage", "Value": {"Ref": "ApiapiStage"}},
]
OF_CHAT: Final = [{"Name": "service", "Value": "chat"}]
READER: Final = [{"Name": "FunctionName", "Value": {"Ref": "ReaderFunction"}}]
ROLLUP: Final = [{"Name": "FunctionName", "Value": {"Ref": "RollupFunction"}}]
BATCH_FAILURES: Final = [
    {"Name": "QueueName", "Value": {"Fn::GetAtt": ["BatchFailures", "QueueName"]}}
]
ANSWERS: Final = [{"Name": "QueueName", "Value": {"Fn::GetAtt": ["BackgroundQueue", "QueueName"]}}]
OF_THE_SWEEPER: Final = [{"Name": "service", "Value": "sweeper"}]
# Metrics that AWS keeps: "Amazon API Gateway dimensions and metrics", "Types of metrics for
# Lambda functions" and "Available CloudWatch metrics for Amazon SQS", 2026-11-27.
OF_AWS: Final = {
    ("AWS/ApiGateway", "Count"),
    ("AWS/ApiGateway", "4XXError"),
    ("AWS/ApiGateway", "5XXError"),
    ("AWS/Lambda", "ConcurrentExecutions"),
    ("AWS/Lambda", "Duration"),
    ("AWS/Lambda", "Errors"),
    ("AWS/Lambda", "Throttles"),
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"),
    ("AWS/SQS", "ApproximateNumberOfMessagesNotVisible"),
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"),
}


# Of the sweeper's, as powertools writes them.
SWEPT: Final = {
    "AuditDifference",
    "HoldsFound",
    "HoldsSettled",
    "OldestHoldAge",
    "WebhooksFailed",
    "WebhooksSent",
    "WorkspacesFailed",
}
CHATS: Final = {
    it.name for it in (*vars(emf).values(), *emf.OF_RULES) if isinstance(it, emf.Metric)
}
ROLLED_UP: Final = {"DaysClosed", "DaysExported"}
# The dimensions of metrics, for each service.
DIMENSIONS: Final = {
    "chat": {("service",), ("service", "provider"), ("service", "provider", "error")},
    "sweeper": {("service",)},
}


def strings_in(path: str) -> set[str]:
    tree = ast.parse((FUNCTIONS / path).read_text())
    return {
        it.value for it in ast.walk(tree) if isinstance(it, ast.Constant) and type(it.value) is str
    }


def watched(alarm: JsonObject) -> tuple[object, str, object]:
    """Return namespace, name and dimensions of the metrics of an alarm, direct or in a formula."""
    if "Metrics" not in alarm:
        return alarm["Namespace"], alarm["MetricName"], alarm["Dimensions"]
    (stat,) = (it["MetricStat"]["Metric"] for it in alarm["Metrics"] if "MetricStat" in it)
    return stat["Namespace"], stat["MetricName"], stat["Dimensions"]


def body(stack: Stack) -> JsonObject:
    (dashboard,) = stack.properties("AWS::CloudWatch::Dashboard").values()
    return json.loads(dashboard["DashboardBody"]["Fn::Sub"])


def drawn(stack: Stack) -> list[JsonObject]:
    """The properties of the widgets that draw metrics."""
    return [it["properties"] for it in body(stack)["widgets"] if it["type"] == "metric"]


def metrics_shown(stack: Stack) -> list[list[Any]]:
    """Namespace, name and dimensions of each, without how it is drawn."""
    rows = [row for it in drawn(stack) for row in it["metrics"]]
    return [[it for it in row if type(it) is str] for row in rows if type(row[0]) is str]


def searches(stack: Stack) -> str:
    """The formulas of all widgets."""
    rows = [row for it in drawn(stack) for row in it["metrics"]]
    return "\n".join(row[0]["expression"] for row in rows if type(row[0]) is not str)


def throttles(stack: Stack) -> dict[tuple[str, str], tuple[str, str]]:
    """The parameters of rate and burst for each method of each path."""
    (stage,) = stack.properties("AWS::ApiGateway::Stage").values()
    return {
        # CloudFormation writes a slash within a path as ~1.
        (it["HttpMethod"], it["ResourcePath"].removeprefix("/").replace("~1", "/")): (
            it["ThrottlingRateLimit"]["Ref"],
            it["ThrottlingBurstLimit"]["Ref"],
        )
        for it in stage["MethodSettings"]
    }


def test_every_route_is_throttled_and_chat_by_itself(stack: Stack) -> None:
    chat = {("POST", it.path) for it in stack.routes() if it.method == "post"}
    assert chat == {("POST", path) for path in STREAMING_PATHS}
    limits = ("RequestsPerSecond", "RequestsBurst")
    assert throttles(stack) == {("*", "*"): limits, **dict.fromkeys(chat, limits)}
    assert stack.parameters["RequestsPerSecond"]["Default"] == 100
    assert stack.parameters["RequestsBurst"]["Default"] == 200


def test_each_alarm_watches_what_it_names(stack: Stack) -> None:
    found = {
        name: (*watched(it), it["Threshold"])
        for name, it in stack.properties("AWS::CloudWatch::Alarm").items()
    }
    assert found == {
        "ServerErrorsAlarm": ("AWS/ApiGateway", "5XXError", STAGE, 5),
        "ChatThrottlesAlarm": ("AWS/Lambda", "Throttles", CHAT, 1),
        "ChatDurationAlarm": ("AWS/Lambda", "Duration", CHAT, 800_000),
        "ProvidersFailedAlarm": (NAMESPACE, "ProvidersFailed", OF_CHAT, 5),
        "UsageBoundedAlarm": (NAMESPACE, "UsageBounded", OF_CHAT, 1),
        "UnsettledAlarm": (NAMESPACE, "Unsettled", OF_CHAT, 1),
        "CatalogAlarm": (NAMESPACE, "CatalogsKeptBack", OF_CHAT, 1),
        "SweeperErrorsAlarm": ("AWS/Lambda", "Errors", SWEEPER, 1),
        "ReaderThrottlesAlarm": ("AWS/Lambda", "Throttles", READER, 1),
        "ReaderErrorsAlarm": ("AWS/Lambda", "Errors", READER, 10),
        "BatchFailuresAlarm": (
            "AWS/SQS",
            "ApproximateNumberOfMessagesVisible",
            BATCH_FAILURES,
            1,
        ),
        "ResponsesWaitAlarm": ("AWS/SQS", "ApproximateAgeOfOldestMessage", ANSWERS, 1800),
        "RollupErrorsAlarm": ("AWS/Lambda", "Errors", ROLLUP, 1),
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
    sent = {"chat": CHATS, "sweeper": SWEPT}
    for alarm_name, alarm in stack.properties("AWS::CloudWatch::Alarm").items():
        namespace, name, dimensions = watched(alarm)
        if namespace == NAMESPACE:
            [service] = (it["Value"] for it in dimensions if it["Name"] == "service")
            assert name in sent[service], alarm_name
        else:
            assert (namespace, name) in OF_AWS, alarm_name


def test_the_sweepers_metrics_are_those_it_sends_where_it_is_told(stack: Stack) -> None:
    assert SWEPT | {"sweeper"} <= strings_in("sweeper.py")
    assert ROLLED_UP | {"rollup"} <= strings_in("rollup.py")
    for function in stack.functions:
        assert stack.environment(function)["TOLLGATE_METRICS_NAMESPACE"] == NAMESPACE


def test_the_dashboard_shows_metrics_that_exist(stack: Stack) -> None:
    sent = {"chat": CHATS, "sweeper": SWEPT, "rollup": ROLLED_UP}
    shown = 0
    for namespace, name, *dimensions in metrics_shown(stack):
        if namespace == NAMESPACE["Fn::Sub"]:
            assert name in sent[dimensions[1]]
            assert dimensions[0] == "service"
        else:
            assert (namespace, name) in OF_AWS
        shown += 1
    assert shown >= 18


def test_the_dashboard_searches_for_metrics_that_exist(stack: Stack) -> None:
    found = re.findall(r"SEARCH\('\{([^}]+(?:\}[^}]*)?)\} MetricName=\"(\w+)\"", searches(stack))
    assert {name for _, name in found} == {
        "AttemptsFailed",
        "CostNanoUsd",
        "FirstToken",
        "UsageBounded",
    }
    for schema, name in found:
        namespace, *dimensions = schema.split(",")
        assert namespace == NAMESPACE["Fn::Sub"]
        assert tuple(dimensions) in DIMENSIONS["chat"]
        assert name in CHATS


def test_the_dashboard_adds_up_fields_that_lines_have(stack: Stack) -> None:
    queries = [it["properties"]["query"] for it in body(stack)["widgets"] if it["type"] == "log"]
    fields = set(canonical_line(RECORD)) | CHATS
    by = set()
    for query in queries:
        source, *steps = query.split(" | ")
        assert source == "SOURCE '${ChatLogs}'"
        stats = steps[1]
        by |= {it.strip() for it in stats.rpartition(" by ")[2].split(",")}
        used = set(re.findall(r"(?:sum|pct|ispresent)\((\w+)", query))
        assert used | {it.strip() for it in stats.rpartition(" by ")[2].split(",")} <= fields
    assert {"model", "team", "workspace_id", "key_id", "error"} <= by


def test_a_metric_by_provider_is_searched_where_it_is_sent() -> None:
    line = EmbeddedMetrics("Tollgate/x", FixedClock()).measure_generation(
        replace(RECORD, first_token_ms=1)
    )
    directives = line["_aws"]["CloudWatchMetrics"]
    [by_provider] = [it for it in directives if it["Dimensions"] == [["service", "provider"]]]
    assert {"CostNanoUsd", "FirstToken"} <= {it["Name"] for it in by_provider["Metrics"]}


def test_every_widget_is_of_this_region(stack: Stack) -> None:
    for widget in body(stack)["widgets"]:
        assert widget["properties"]["region"] == "${AWS::Region}"


def test_the_dashboard_refers_to_this_stack_only(stack: Stack) -> None:
    (dashboard,) = stack.properties("AWS::CloudWatch::Dashboard").values()
    references = set(re.findall(r"\$\{([^}]+)\}", dashboard["DashboardBody"]["Fn::Sub"]))
    known = {"AWS::Region", "AWS::StackName", "Api"} | set(stack.template["Resources"])
    assert {it.partition(".")[0] for it in references} <= known


def test_deployments_are_tagged() -> None:
    config = (ROOT / "samconfig.toml").read_text()
    assert 'tags = "app=tollgate env=default"' in config
    assert 'tags = "app=tollgate env=prod"' in config
