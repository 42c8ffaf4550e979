"""The emulator's gateway: events, routes, limits, timeouts, and how it ends a test.

Keeps C36.
"""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import AsyncIterator

import pytest

from tests.emulator import Emulator, InitFailed, Rule, RulesBroken
from tests.emulator.front import EVENT_BYTES_MAX, PAYLOAD_BYTES_MAX
from tests.emulator.puppetry import SAMPLES, chunk, end, opened, post, request, streamed
from tests.emulator.routes import select
from tests.emulator.staging import staged

AWSLAMBDARIC = [sys.executable, "-m", "awslambdaric", "handlers.handle"]


@pytest.fixture
async def api() -> AsyncIterator[Emulator]:
    """An unmodified awslambdaric behind BUFFERED methods."""
    async with Emulator(binary_media_types=("image/*",)) as emulator:
        await emulator.start_function(
            name="api",
            command=AWSLAMBDARIC,
            mode="BUFFERED",
            timeout_s=60,
            routes=["ANY /{proxy+}", "GET /v1/models/{author}"],
            task_root=SAMPLES,
        )
        yield emulator


async def test_the_event_is_a_rest_proxy_event(api: Emulator) -> None:
    url = api.url + "/v1/keys/a%2Fb?tag=x&tag=y%20z&empty="
    response = await request(url, {"some": "body"}, headers={"X-One": "1", "User-Agent": "test"})
    seen = await response.json()
    response.close()
    event = seen["event"]
    assert event["resource"] == "/{proxy+}"
    assert event["path"] == "/v1/keys/a%2Fb"
    assert event["httpMethod"] == "POST"
    assert event["headers"]["X-One"] == "1"
    assert event["multiValueHeaders"]["X-One"] == ["1"]
    assert event["headers"]["X-Forwarded-For"] == "127.0.0.1"
    assert "Content-Length" not in event["headers"]
    assert event["queryStringParameters"] == {"tag": "y z", "empty": ""}
    assert event["multiValueQueryStringParameters"] == {"tag": ["x", "y z"], "empty": [""]}
    assert event["pathParameters"] == {"proxy": "v1/keys/a/b"}
    assert event["stageVariables"] is None
    assert event["body"] == '{"some": "body"}'
    assert event["isBase64Encoded"] is False
    context = event["requestContext"]
    assert context["stage"] == "api"
    assert context["path"] == "/api/v1/keys/a%2Fb"
    assert context["identity"]["sourceIp"] == "127.0.0.1"
    assert context["identity"]["userAgent"] == "test"
    assert re.fullmatch(r"\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000", context["requestTime"])
    assert response.headers["x-amzn-requestid"] == [context["requestId"]]
    assert seen["request_id"] == api.functions["api"].invocations[0].request_id
    assert 0 < seen["remaining_ms"] <= 60_000


async def test_the_process_has_lambdas_environment_and_nothing_of_its_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ONLY_THE_PARENT_HAS", "this")
    async with Emulator() as emulator:
        await emulator.start_function(
            name="api",
            command=AWSLAMBDARIC,
            env={"OURS": "1"},
            mode="BUFFERED",
            timeout_s=29,
            memory_mb=512,
            routes=["GET /x"],
            task_root=SAMPLES,
        )
        response = await request(emulator.url + "/x", method="GET")
        environ = (await response.json())["environ"]
        response.close()
    assert "ONLY_THE_PARENT_HAS" not in environ
    assert environ["OURS"] == "1"
    assert environ["_HANDLER"] == "handlers.handle"
    assert environ["LAMBDA_TASK_ROOT"] == str(SAMPLES)
    assert environ["AWS_LAMBDA_FUNCTION_NAME"] == "api"
    assert environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "512"
    assert environ["AWS_LAMBDA_INITIALIZATION_TYPE"] == "on-demand"
    assert environ["TZ"] == ":UTC"
    assert environ["AWS_SESSION_TOKEN"]


async def test_what_a_request_lacks_is_null_in_the_event(api: Emulator) -> None:
    response = await request(api.url + "/v1/models/openai", method="GET")
    event = (await response.json())["event"]
    response.close()
    assert event["resource"] == "/v1/models/{author}"
    assert event["pathParameters"] == {"author": "openai"}
    assert event["queryStringParameters"] is None
    assert event["multiValueQueryStringParameters"] is None
    assert event["body"] is None


async def test_a_binary_media_type_arrives_as_base64(api: Emulator) -> None:
    headers = {"Content-Type": "image/png"}
    response = await request(api.url + "/x", b"\x89PNG\xff", headers=headers)
    assert response.status == 502
    response.close()
    event = api.functions["api"].invocations[0].event
    assert (event["isBase64Encoded"], event["body"]) == (True, "iVBOR/8=")


@pytest.mark.parametrize(
    "reply",
    [
        "text",
        {"body": "no status"},
        {"statusCode": "200", "body": ""},
        {"statusCode": 200, "body": {"not": "a string"}},
        {"statusCode": 200, "body": "", "cookies": []},
        {"statusCode": 200, "headers": {"x": ["a"]}},
        {"statusCode": 200, "body": "%", "isBase64Encoded": True},
    ],
)
async def test_a_malformed_proxy_response_is_a_502(api: Emulator, reply: object) -> None:
    response = await request(api.url + "/x", {"reply": reply}, headers={"Accept": "image/png"})
    assert response.status == 502
    assert await response.json() == {"message": "Internal server error"}
    response.close()
    broken = [violation.rule for violation in api.take_violations()]
    assert broken == [Rule.MALFORMED_PROXY_RESPONSE]


async def test_a_proxy_response_merges_its_headers_and_remaps_some(api: Emulator) -> None:
    reply = {
        "statusCode": 401,
        "headers": {"x-a": "1", "www-authenticate": "Bearer", "content-length": "999"},
        "multiValueHeaders": {"x-a": ["1", "2"]},
        "body": "no",
    }
    response = await request(api.url + "/x", {"reply": reply})
    assert (response.status, await response.body()) == (401, b"no")
    response.close()
    assert response.headers["x-a"] == ["1", "2"]
    assert response.headers["x-amzn-remapped-www-authenticate"] == ["Bearer"]
    assert response.headers["content-type"] == ["application/json"]


async def test_base64_is_decoded_only_for_a_binary_accept(api: Emulator) -> None:
    body = base64.b64encode(b"\x89PNG").decode()
    asked = {"reply": {"statusCode": 200, "body": body, "isBase64Encoded": True}}
    response = await request(api.url + "/x", asked, headers={"Accept": "image/png"})
    assert await response.body() == b"\x89PNG"
    response.close()
    response = await request(api.url + "/x", asked)
    assert response.status == 502
    response.close()
    assert [violation.rule for violation in api.take_violations()] == [Rule.BASE64_NOT_DECODED]


async def test_a_raised_exception_is_a_502_and_recorded(api: Emulator) -> None:
    response = await request(api.url + "/x", {"raise": "broken"})
    assert response.status == 502
    response.close()
    record = api.functions["api"].invocations[0]
    assert (record.status, record.error) == (502, "RuntimeError: broken")


async def test_a_buffered_response_over_6_mb_is_refused(api: Emulator) -> None:
    response = await request(api.url + "/x", {"repeat": 6 * 1024 * 1024 + 100})
    assert response.status == 502
    response.close()
    assert [violation.rule for violation in api.take_violations()] == [Rule.RESPONSE_TOO_LARGE]


async def test_a_hang_is_504_at_the_integration_timeout_and_502_at_the_functions_own() -> None:
    async with Emulator() as emulator:
        api = await emulator.start_function(
            name="api",
            command=AWSLAMBDARIC,
            mode="BUFFERED",
            timeout_s=60,
            integration_timeout_s=0.2,
            routes=["POST /x"],
            task_root=SAMPLES,
        )
        response = await request(emulator.url + "/x", {"hang": True})
        assert response.status == 504
        assert await response.json() == {"message": "Endpoint request timed out"}
        response.close()
        assert not api.invocations[0].finished.is_set()
        await api.kill()
        api.integration_timeout_s = 29
        api.timeout_once(0.2)
        response = await request(emulator.url + "/x", {"hang": True})
        assert response.status == 502
        response.close()
        assert api.invocations[1].error == "Task timed out after 0.20 seconds"


async def test_a_prelude_behind_a_buffered_method_loses_its_body() -> None:
    async with staged(mode="BUFFERED") as stage:
        response = await stage.ask(streamed("lost"))
        assert response.status == 200
        assert await response.body() == b""
        response.close()
        assert stage.broken() == [Rule.PRELUDE_ON_BUFFERED]


async def test_a_silent_stream_is_cut_at_the_idle_timeout_and_the_function_goes_on() -> None:
    async with staged(idle_timeout_s=0.2) as stage:
        steps = [*opened(), *chunk("half"), ["wait", "the client is cut off"], *end()]
        response = await stage.ask(steps)
        assert await response.body() == b"half"
        assert response.cut
        response.close()
        await stage.gate.open("the client is cut off")
        record = stage.function.invocations[0]
        await record.finished.wait()
        assert record.error is None


async def test_c36_a_client_that_leaves_does_not_stop_the_function() -> None:
    async with staged() as stage:
        steps = [*opened(), *chunk("one"), ["wait", "gone"], *chunk("two"), *end()]
        response = await stage.ask(steps)
        assert await response.chunk() == b"one"
        response.close()
        await response.writer.wait_closed()
        await stage.gate.open("gone")
        record = stage.function.invocations[0]
        await record.finished.wait()
        assert (record.error, len(record.chunks)) == (None, 3)
        response = await stage.ask(streamed("next"))
        assert await response.body() == b"next"
        response.close()
        assert record.client_gone


async def test_unknown_routes_and_methods_are_403() -> None:
    async with staged() as stage:
        url = stage.emulator.url
        for method, path in (("GET", "/v1/chat/completions"), ("POST", "/v1/other")):
            response = await request(url + path, method=method)
            assert response.status == 403
            assert await response.json() == {"message": "Missing Authentication Token"}
            error_type = response.headers["x-amzn-errortype"]
            assert error_type == ["MissingAuthenticationTokenException"]
            response.close()
        response = await request(url.removesuffix("api") + "other/v1/chat/completions")
        assert (response.status, await response.json()) == (403, {"message": "Forbidden"})
        response.close()


async def test_a_request_over_a_limit_never_reaches_the_function() -> None:
    async with staged() as stage:
        url = stage.emulator.url + "/v1/chat/completions"
        for size in (EVENT_BYTES_MAX, PAYLOAD_BYTES_MAX + 1):
            response = await request(url, b"x" * size)
            assert response.status == 413
            response.close()
        response = await request(url, headers={"X-Long": "x" * 10_240})
        assert response.status == 431
        response.close()
        assert stage.function.invocations == []


async def test_requests_wait_for_a_process_and_use_as_many_as_allowed() -> None:
    async with staged(concurrency=2) as stage:
        steps = [*opened(), ["wait", "both run"], *end()]
        first = await stage.ask(steps)
        second = await stage.ask(steps)
        assert stage.function.environments_started == 2
        await stage.gate.open("both run")
        await stage.gate.open("both run")
        for response in (first, second):
            assert await response.body() == b""
            response.close()


async def test_the_exec_wrapper_gets_the_interpreter_and_its_arguments() -> None:
    wrapper = str(SAMPLES / "wrapper")
    async with staged(env={"AWS_LAMBDA_EXEC_WRAPPER": wrapper}) as stage:
        assert f"wrapped {sys.executable} -m puppet" in stage.function.log
        response = await stage.ask(streamed("wrapped"))
        assert await response.body() == b"wrapped"
        response.close()


async def test_a_function_that_cannot_start_says_why() -> None:
    with pytest.raises(InitFailed, match="No such file"):
        async with staged(env={"AWS_LAMBDA_EXEC_WRAPPER": "/no/such/wrapper"}):
            pass
    async with Emulator() as emulator:
        with pytest.raises(InitFailed, match=r"(?s)Unable to import module 'missing'"):
            await emulator.start_function(
                name="api",
                command=[*AWSLAMBDARIC[:-1], "missing.handle"],
                mode="BUFFERED",
                timeout_s=29,
                routes=["ANY /x"],
                task_root=SAMPLES,
            )


@pytest.mark.parametrize("env", [{"AWS_REGION": "eu-west-1"}, {"BIG": "x" * 4096}])
async def test_an_environment_that_lambda_would_refuse_is_refused(env: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="environment"):
        async with staged(env=env):
            pass


async def test_a_violation_that_no_test_took_fails_it() -> None:
    async def break_a_rule() -> None:
        async with staged() as stage:
            response = await stage.ask([*post({}, body="{}"), ["read", None]])
            response.close()

    with pytest.raises(RulesBroken, match=r"(?s)NOT_STREAMED.*Stream the integration response"):
        await break_a_rule()


def test_a_literal_resource_wins_over_a_parameter_and_that_over_a_greedy_one() -> None:
    resources = {"/{proxy+}", "/v1/{proxy+}", "/v1/{name}", "/v1/models", "/v1/models/{a}/{b}"}
    found = {
        "/": None,
        "/x": "/{proxy+}",
        "/v1/models": "/v1/models",
        "/v1/models/": "/v1/models",
        "/v1/keys": "/v1/{name}",
        "/v1/models/a/b": "/v1/models/{a}/{b}",
        "/v1/models/a/b/c": "/v1/{proxy+}",
    }
    for path, resource in found.items():
        matched = select(resources, path)
        assert (matched.resource if matched else None) == resource
