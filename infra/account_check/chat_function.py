"""The streaming function of a stack, which probes change temporarily."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from botocore.exceptions import ClientError  # type: ignore[import-untyped]

# Logical ids of the function and its log group in infra/template.yaml.
_FUNCTION: Final = "ChatFunction"
_LOGS: Final = "ChatLogs"
_SNAPSHOTS: Final = "PublishedVersions"
_OURS: Final = "account-check: may be deleted"

Clients = Callable[[str], Any]


class ChatFunction:
    """A deployed streaming function; `clients` returns the boto3 client for a service."""

    def __init__(self, clients: Clients, stack: str) -> None:
        self._lambda = clients("lambda")
        self._logs = clients("logs")
        formation = clients("cloudformation")
        self.name = _physical_id(formation, stack, _FUNCTION)
        self._log_group = _physical_id(formation, stack, _LOGS)

    @asynccontextmanager
    async def throttled(self) -> AsyncIterator[None]:
        """Make Lambda refuse all invocations until the block ends."""
        answer = self._lambda.get_function_concurrency(FunctionName=self.name)
        before = answer.get("ReservedConcurrentExecutions")
        self._reserve(0)
        try:
            yield
        finally:
            if before is None:
                self._lambda.delete_function_concurrency(FunctionName=self.name)
            else:
                self._reserve(before)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[str]:
        """Publish a version that starts from a snapshot, yield its number, then delete the version.

        If the function is unchanged, Lambda returns the last version. That version is not deleted,
        because it may serve requests.
        """
        is_on = self._snap_start().get("ApplyOn") == _SNAPSHOTS
        try:
            self._set_snapshots(_SNAPSHOTS)
            published = self._lambda.publish_version(FunctionName=self.name, Description=_OURS)
            version = published["Version"]
            try:
                self._wait("published_version_active", Qualifier=version)
                yield version
            finally:
                if published.get("Description") == _OURS:
                    self._lambda.delete_function(FunctionName=self.name, Qualifier=version)
        finally:
            if not is_on:
                self._set_snapshots("None")

    def optimized(self, version: str) -> bool:
        """Return whether Lambda has a snapshot for a version."""
        return self._snap_start(Qualifier=version).get("OptimizationStatus") == "On"

    def invoke(self, version: str, event: Mapping[str, object]) -> bytes:
        """Invoke a version, and return its answer or Lambda's error document."""
        answer = self._lambda.invoke(
            FunctionName=self.name, Qualifier=version, Payload=json.dumps(event).encode()
        )
        content: bytes = answer["Payload"].read()
        return content

    def log_lines(self, field: str, value: str, since_s: float) -> list[Mapping[str, Any]]:
        """Return the JSON log lines since a Unix time in which a field has a value."""
        pages = self._logs.get_paginator("filter_log_events").paginate(
            logGroupName=self._log_group,
            startTime=int(since_s * 1000),
            filterPattern=f'{{ $.{field} = "{value}" }}',
        )
        return [json.loads(event["message"]) for page in pages for event in page["events"]]

    def _reserve(self, environments: int) -> None:
        self._lambda.put_function_concurrency(
            FunctionName=self.name, ReservedConcurrentExecutions=environments
        )

    def _snap_start(self, **version: str) -> Mapping[str, str]:
        answer = self._lambda.get_function_configuration(FunctionName=self.name, **version)
        snap_start: Mapping[str, str] = answer.get("SnapStart", {})
        return snap_start

    def _set_snapshots(self, apply_on: str) -> None:
        self._lambda.update_function_configuration(
            FunctionName=self.name, SnapStart={"ApplyOn": apply_on}
        )
        self._wait("function_updated_v2")

    def _wait(self, waiter: str, **version: str) -> None:
        self._lambda.get_waiter(waiter).wait(FunctionName=self.name, **version)


def count_managed_places(formation: Any, stack: str) -> int | None:
    """Return the number of requests that a stack's managed environments serve at once; None if
    functions on demand serve chat.
    """
    (described,) = formation.describe_stacks(StackName=stack)["Stacks"]
    chosen = {it["ParameterKey"]: it["ParameterValue"] for it in described.get("Parameters", ())}
    if chosen.get("ChatCapacity") != "managed":
        return None
    return int(chosen["ManagedConcurrency"]) * int(chosen["ManagedMinimum"])


def error_code(error: ClientError) -> str:
    """Return the error code in a refusal by AWS."""
    return str(error.response["Error"]["Code"])


def _physical_id(formation: Any, stack: str, logical_id: str) -> str:
    answer = formation.describe_stack_resource(StackName=stack, LogicalResourceId=logical_id)
    return str(answer["StackResourceDetail"]["PhysicalResourceId"])
