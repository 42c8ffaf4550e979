"""The probes that ask the deployed function itself."""

import asyncio
import json
import signal
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from botocore.response import StreamingBody
from botocore.stub import ANY
from msgspec.structs import replace

from infra.account_check.__main__ import interrupted_by_signals
from infra.account_check.chat_function import count_managed_places
from infra.account_check.probes import (
    MANAGED,
    PAUSES_S,
    SNAPSHOT,
    THROTTLE,
    call_signed,
    fill,
    miss_secret,
    run_probe,
    snapshot,
    thaw,
    throttle,
    time_chunks,
)
from tests.infra.account_check.scripted_stack import Reply, ScriptedStack, scripted_stack
from tollgate.cli.stack.probe import Probe

NAME = {"FunctionName": "chat-1"}
BUSY = Reply.error(503, "service_unavailable", retry_after="1")


@pytest.fixture
def stack() -> Iterator[ScriptedStack]:
    with scripted_stack(keyless=("groq/fast", "tollgate/groq")) as scripted:
        yield scripted


async def test_events_that_arrive_one_by_one_are_as_expected(stack: ScriptedStack) -> None:
    stack.answer(Reply())
    verdict = await time_chunks(stack.subject)
    assert (verdict.judgement, verdict.seen) == (
        "as expected",
        "4 events; the first after 0.10 s, the last after 0.40 s, longest gap 0.10 s",
    )


@pytest.mark.parametrize(
    "reply",
    [
        Reply(headers={"content-length": str(len(Reply().body))}),
        Reply(body=b"data: {}\n\n"),
        Reply.error(500, "internal_error"),
    ],
    ids=["buffered", "broken off", "refused"],
)
async def test_other_streams_are_not(stack: ScriptedStack, reply: Reply) -> None:
    stack.answer(reply)
    assert (await time_chunks(stack.subject)).judgement == "otherwise"


def throttled(stack: ScriptedStack, before: int | None) -> None:
    """Record what Lambda answers while it is told to refuse, and to take up again."""
    settings = {} if before is None else {"ReservedConcurrentExecutions": before}
    stack.aws.expect("lambda", "get_function_concurrency", NAME, settings)
    refused = NAME | {"ReservedConcurrentExecutions": 0}
    stack.aws.expect("lambda", "put_function_concurrency", refused, {})
    if before is None:
        stack.aws.expect("lambda", "delete_function_concurrency", NAME, {})
    else:
        restored = NAME | {"ReservedConcurrentExecutions": before}
        stack.aws.expect("lambda", "put_function_concurrency", restored, {})


@pytest.mark.parametrize("before", [None, 5])
async def test_a_throttle_that_clients_can_read_is_as_expected(
    stack: ScriptedStack, before: int | None
) -> None:
    throttled(stack, before)
    # The setting takes a moment to hold.
    stack.answer(Reply(), BUSY)
    verdict = await throttle(stack.subject)
    assert verdict.judgement == "as expected"
    assert verdict.seen == "503 service_unavailable, Retry-After 1"
    assert stack.clock.slept_s == [3.0]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(),
        Reply.error(503, "service_unavailable"),
        Reply.error(503, "internal_error", retry_after="1"),
        Reply.error(500, "service_unavailable", retry_after="1"),
        Reply(502, b'{"message": "Internal server error"}', {"retry-after": "1"}),
    ],
    ids=[
        "never refused",
        "no Retry-After",
        "another code",
        "another status",
        "API Gateway's own words",
    ],
)
async def test_other_throttles_are_not(stack: ScriptedStack, reply: Reply) -> None:
    throttled(stack, None)
    stack.answer(reply)
    assert (await throttle(stack.subject)).judgement == "otherwise"


async def test_a_throttle_is_lifted_though_nothing_answers(stack: ScriptedStack) -> None:
    throttled(stack, 5)
    silent = replace(stack.subject, probe=Probe("http://127.0.0.1:9", "key", stack.clock))
    assert (await run_probe(THROTTLE, throttle, silent)).judgement == "unanswered"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_throttle_is_lifted_though_the_check_is_killed(
    stack: ScriptedStack, number: signal.Signals
) -> None:
    throttled(stack, 5)

    async def probe() -> None:
        async with stack.subject.function.throttled():
            signal.raise_signal(number)
            await asyncio.Event().wait()

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
        asyncio.run(probe())
    assert signal.getsignal(number) == before


def logged(stack: ScriptedStack, *rejections: str) -> None:
    """Record the answer of the next search in the logs."""
    found = {
        "events": [
            {"message": json.dumps({"secret": "tollgate/groq", "rejection": it})}
            for it in rejections
        ]
    }
    question = {
        "logGroupName": "/logs/chat",
        "startTime": ANY,
        "filterPattern": '{ $.secret = "tollgate/groq" }',
    }
    stack.aws.expect("logs", "filter_log_events", question, found)


@pytest.mark.parametrize("rejection", ["ResourceNotFoundException", "AccessDeniedException"])
async def test_either_code_of_a_missing_secret_is_as_expected(
    stack: ScriptedStack, rejection: str
) -> None:
    stack.answer(Reply.error(502, "provider_auth"))
    logged(stack)
    logged(stack, rejection)
    verdict = await miss_secret(stack.subject)
    assert verdict.judgement == "as expected"
    assert (
        verdict.seen == f"provider_auth for groq/fast; AWS answered {rejection} for tollgate/groq"
    )


@pytest.mark.parametrize(
    ("code", "rejection"),
    [
        ("service_unavailable", "AccessDeniedException"),
        ("provider_auth", "DecryptionFailure"),
    ],
)
async def test_other_codes_of_a_missing_secret_are_not(
    stack: ScriptedStack, code: str, rejection: str
) -> None:
    stack.answer(Reply.error(502, code))
    logged(stack, rejection)
    assert (await miss_secret(stack.subject)).judgement == "otherwise"


async def test_without_a_missing_secret_nothing_is_asked() -> None:
    with scripted_stack() as stack:
        assert (await miss_secret(stack.subject)).judgement == "unanswered"


async def test_whole_answers_after_each_pause_are_as_expected(stack: ScriptedStack) -> None:
    stack.answer(Reply())
    verdict = await thaw(stack.subject)
    assert verdict.judgement == "as expected"
    assert stack.clock.slept_s == list(PAUSES_S)
    assert verdict.seen.startswith("after 20 s 200 in 0.40 s, 0 failed attempts; after 120 s 200")


@pytest.mark.parametrize("failure", ["a broken answer", "a second attempt"])
async def test_a_failure_after_a_pause_is_not(stack: ScriptedStack, failure: str) -> None:
    if failure == "a broken answer":
        stack.answer(Reply(), Reply(), Reply.error(502, "provider_unavailable"), Reply())
    else:
        stack.answer(Reply())
        stack.attempts[:] = ["provider_unavailable", None]
    assert (await thaw(stack.subject)).judgement == "otherwise"


def snapped(
    stack: ScriptedStack, *answers: bytes, before: str = "None", status: str = "On"
) -> None:
    """Record what Lambda answers while a version with a snapshot is made, used and deleted."""
    aws, version = stack.aws, NAME | {"Qualifier": "7"}
    ready = {"LastUpdateStatus": "Successful", "State": "Active"}
    aws.expect("lambda", "get_function_configuration", NAME, {"SnapStart": {"ApplyOn": before}})
    update = "update_function_configuration"
    aws.expect("lambda", update, NAME | {"SnapStart": {"ApplyOn": "PublishedVersions"}}, {})
    aws.expect("lambda", "get_function", NAME, {"Configuration": ready})
    ours = {"Description": "account-check: may be deleted"}
    # Where snapshots are on already, nothing has changed since the version that serves.
    last = ours if before == "None" else {"Description": "origins: *"}
    aws.expect("lambda", "publish_version", NAME | ours, {"Version": "7", **last})
    aws.expect("lambda", "get_function_configuration", version, ready)
    snap_start = {"SnapStart": {"ApplyOn": "PublishedVersions", "OptimizationStatus": status}}
    aws.expect("lambda", "get_function_configuration", version, snap_start)
    for answer in answers:
        payload = StreamingBody(BytesIO(answer), len(answer))
        invoked: dict[str, Any] = version | {"Payload": ANY}
        aws.expect("lambda", "invoke", invoked, {"StatusCode": 200, "Payload": payload})
    if before == "None":
        aws.expect("lambda", "delete_function", version, {})
        aws.expect("lambda", update, NAME | {"SnapStart": {"ApplyOn": "None"}}, {})
        aws.expect("lambda", "get_function", NAME, {"Configuration": ready})


REFUSED = b'{"statusCode": 401}' + bytes(8) + b'{"error": {}}'
FAILED = b'{"errorType": "Runtime.ExitError", "errorMessage": "exited"}'


@pytest.mark.parametrize("before", ["None", "PublishedVersions"])
async def test_a_restored_function_that_answers_is_as_expected(
    stack: ScriptedStack, before: str
) -> None:
    snapped(stack, REFUSED, REFUSED, before=before)
    verdict = await snapshot(stack.subject)
    assert (verdict.judgement, verdict.seen) == ("as expected", "snapshot on; answered 401, 401")


@pytest.mark.parametrize(
    ("second", "status"), [(FAILED, "On"), (b"Task timed out", "On"), (REFUSED, "Off")]
)
async def test_another_restored_function_is_not(
    stack: ScriptedStack, second: bytes, status: str
) -> None:
    snapped(stack, REFUSED, second, status=status)
    assert (await snapshot(stack.subject)).judgement == "otherwise"


async def test_the_setting_is_restored_though_no_version_can_be_published(
    stack: ScriptedStack,
) -> None:
    update = "update_function_configuration"
    ready = {"Configuration": {"LastUpdateStatus": "Successful"}}
    stack.aws.expect("lambda", "get_function_configuration", NAME, {})
    for apply_on in ("PublishedVersions", "None"):
        if apply_on == "None":
            stack.aws.refuse("lambda", "publish_version", "CodeStorageExceededException")
        stack.aws.expect("lambda", update, NAME | {"SnapStart": {"ApplyOn": apply_on}}, {})
        stack.aws.expect("lambda", "get_function", NAME, ready)
    verdict = await run_probe(SNAPSHOT, snapshot, stack.subject)
    assert verdict.seen == "AWS refused PublishVersion: CodeStorageExceededException"


async def test_a_refused_call_of_aws_leaves_the_question_open(stack: ScriptedStack) -> None:
    stack.aws.refuse("lambda", "get_function_configuration", "AccessDeniedException")
    verdict = await run_probe(SNAPSHOT, snapshot, stack.subject)
    assert verdict.judgement == "unanswered"
    assert verdict.seen == "AWS refused GetFunctionConfiguration: AccessDeniedException"


async def test_each_signed_row_is_called_and_no_other(stack: ScriptedStack) -> None:
    stack.answer(Reply())
    verdict = await call_signed(stack.subject)
    assert (verdict.judgement, verdict.seen) == (
        "as expected",
        "bedrock-chat 200; bedrock-mantle 200",
    )
    assert [(it["model"], it["provider"]) for it in stack.asked] == [
        ("a/one", {"only": ["bedrock-chat"], "allow_fallbacks": False}),
        ("a/two", {"only": ["bedrock-mantle"], "allow_fallbacks": False}),
    ]


async def test_a_signed_row_that_is_refused_is_named(stack: ScriptedStack) -> None:
    stack.answer(Reply(), Reply.error(502, "provider_auth"))
    verdict = await call_signed(stack.subject)
    assert verdict.judgement == "otherwise"
    assert verdict.seen.startswith("bedrock-chat 200; bedrock-mantle 502")


async def test_a_file_without_signed_rows_leaves_the_question(stack: ScriptedStack) -> None:
    verdict = await call_signed(replace(stack.subject, signed=()))
    assert verdict.judgement == "unanswered"


async def test_full_environments_are_asked_about_only_if_they_serve_chat(
    stack: ScriptedStack,
) -> None:
    verdict = await fill(stack.subject)
    assert (verdict.judgement, verdict.seen) == ("unanswered", "ChatCapacity is on-demand")


@pytest.mark.parametrize(
    ("replies", "judgement"),
    [
        ([Reply()] * 3 + [BUSY], "as expected"),
        ([Reply()] * 4, "as expected"),
        ([Reply()] * 3 + [Reply.error(429, "rate_limit_exceeded")], "otherwise"),
        ([Reply()] * 2 + [BUSY, BUSY], "otherwise"),
        ([Reply()] * 3 + [Reply(headers={"content-length": str(len(Reply().body))})], "otherwise"),
    ],
    ids=["refused", "more places", "not retryable", "fewer places", "buffered"],
)
async def test_full_environments_stream_and_refuse_the_rest(
    stack: ScriptedStack, replies: list[Reply], judgement: str
) -> None:
    stack.answer(*replies)
    verdict = await fill(replace(stack.subject, managed_places=3))
    assert verdict.judgement == judgement, verdict.seen


async def test_managed_instances_are_not_throttled_by_reserved_concurrency(
    stack: ScriptedStack,
) -> None:
    verdict = await throttle(replace(stack.subject, managed_places=3))
    assert verdict.judgement == "unanswered"
    assert MANAGED.name in verdict.seen


def test_the_places_of_managed_environments_are_parameters_of_the_stack(
    stack: ScriptedStack,
) -> None:
    formation = stack.aws.client("cloudformation")
    for capacity, places in (("managed", 48), ("on-demand", None)):
        chosen = {
            "ChatCapacity": capacity,
            "ManagedConcurrency": "16",
            "ManagedMinimum": "3",
        }
        described = {
            "StackName": "tollgate",
            "CreationTime": 0,
            "StackStatus": "CREATE_COMPLETE",
            "Parameters": [
                {"ParameterKey": name, "ParameterValue": value} for name, value in chosen.items()
            ],
        }
        stack.aws.expect(
            "cloudformation", "describe_stacks", {"StackName": "tollgate"}, {"Stacks": [described]}
        )
        assert count_managed_places(formation, "tollgate") == places
