"""The emulator's STREAM side: good streams pass chunk by chunk, bad ones are refused loudly.

Keeps C35.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest

from tests.emulator import Rule
from tests.emulator.puppetry import (
    NULS,
    PRELUDE,
    STREAMING,
    Steps,
    chunk,
    end,
    error_trailers,
    opened,
    post,
    streamed,
)
from tests.emulator.staging import Stage, staged


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as running:
        yield running


async def test_a_stream_arrives_with_its_status_headers_and_chunks(stage: Stage) -> None:
    prelude = '{"statusCode":201,"headers":{"x-one":"1"},"multiValueHeaders":{"x-two":["a","b"]},'
    prelude += '"cookies":["c=1","d=2"]}'
    steps = opened(prelude) + chunk("one") + chunk("two") + end()
    response = await stage.ask(steps)
    assert response.status == 201
    assert response.headers["x-one"] == ["1"]
    assert response.headers["x-two"] == ["a", "b"]
    assert response.headers["set-cookie"] == ["c=1", "d=2"]
    assert response.headers["transfer-encoding"] == ["chunked"]
    assert [await response.chunk() for _ in range(3)] == [b"one", b"two", None]
    assert not response.cut
    response.close()
    record = stage.function.invocations[0]
    await record.finished.wait()
    assert (record.status, record.error, len(record.chunks)) == (201, None, 3)
    assert record.duration_s is not None
    assert "answer 202" in stage.function.log


async def test_c35_a_chunk_reaches_the_client_before_the_function_writes_the_next(
    stage: Stage,
) -> None:
    steps = opened()
    for number in range(5):
        steps += [*chunk(f"data: {number}\n\n"), ["wait", f"read {number}"]]
    response = await stage.ask(steps + end())
    for number in range(5):
        assert await response.chunk() == f"data: {number}\n\n".encode()
        await stage.gate.open(f"read {number}")
    assert await response.chunk() is None
    response.close()


async def test_a_prelude_split_over_chunks_is_read_and_the_rest_is_body(stage: Stage) -> None:
    steps = post(STREAMING) + chunk(PRELUDE[:9]) + chunk(PRELUDE[9:] + NULS[:3])
    response = await stage.ask(steps + chunk(NULS[3:] + "body") + end())
    assert (response.status, await response.body()) == (200, b"body")
    response.close()


async def test_the_openai_sdk_reads_a_stream_through_it(stage: Stage) -> None:
    frame = (
        'data: {"id":"gen-1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
        '[{"index":0,"delta":{"role":"assistant","content":"%s"},"finish_reason":null}]}\n\n'
    )
    steps = opened()
    for word in ("First", " light"):
        steps += [*chunk(frame % word), ["wait", word]]
    steps += chunk("data: [DONE]\n\n") + end()
    async with openai.AsyncOpenAI(
        api_key="sk-tg-test", base_url=stage.emulator.url + "/v1", max_retries=0
    ) as sdk:
        stream = await sdk.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "Say it."}],
            stream=True,
            extra_body={"steps": steps},
        )
        words = []
        async for completion in stream:
            words.append(completion.choices[0].delta.content)
            await stage.gate.open(words[-1] or "")
    assert words == ["First", " light"]
    sent = stage.function.invocations[0].event["headers"].items()
    assert {name.lower(): value for name, value in sent}["authorization"] == "Bearer sk-tg-test"


@pytest.mark.parametrize(
    ("rule", "steps"),
    [
        (Rule.NO_DELIMITER, post(STREAMING) + chunk(PRELUDE + NULS[:7]) + end()),
        (Rule.NO_DELIMITER, post(STREAMING) + chunk(" " * 16384) + chunk(PRELUDE + NULS) + end()),
        (Rule.METADATA_JSON, opened("{'statusCode': 200}") + end()),
        (Rule.METADATA_JSON, opened("[]") + end()),
        (Rule.METADATA_KEY, opened('{"statusCode":200,"body":"x"}') + end()),
        (Rule.METADATA_VALUE, opened('{"statusCode":"200"}') + end()),
        (Rule.METADATA_VALUE, opened('{"headers":{"x-count":1}}') + end()),
        (Rule.METADATA_VALUE, opened('{"headers":{"x-split":"a\\r\\nb: c"}}') + end()),
        (Rule.HOP_BY_HOP, opened('{"headers":{"connection":"keep-alive"}}') + end()),
        (Rule.CONTENT_TYPE, opened(**{"Content-Type": "application/json"}) + end()),
    ],
)
async def test_output_that_is_not_the_stream_format_is_a_500(
    stage: Stage, rule: Rule, steps: Steps
) -> None:
    response = await stage.ask(steps)
    assert response.status == 500
    assert await response.json() == {"message": "Internal server error"}
    response.close()
    assert stage.broken() == [rule]


async def test_a_buffered_response_behind_a_stream_method_is_a_500(stage: Stage) -> None:
    steps = post({"Content-Type": "application/json"}, body='{"statusCode":200,"body":"x"}')
    response = await stage.ask([*steps, ["read", None], ["close", None]])
    assert response.status == 500
    response.close()
    assert stage.broken() == [Rule.NOT_STREAMED]


async def test_a_streamed_response_without_chunks_is_refused(stage: Stage) -> None:
    headers = {key: value for key, value in STREAMING.items() if key != "Transfer-Encoding"}
    response = await stage.ask([*post(headers, body="{}" + NULS), ["read", None], ["close", None]])
    assert response.status == 502
    response.close()
    await stage.function.invocations[0].finished.wait()
    assert stage.broken() == [Rule.NOT_CHUNKED]
    assert "answer 400" in stage.function.log


async def test_a_wrong_chunk_size_cuts_the_stream(stage: Stage) -> None:
    response = await stage.ask([*opened(), ["send", "2\r\nlonger\r\n"], *end()])
    assert await response.chunk() is None
    assert response.cut
    response.close()
    assert stage.broken() == [Rule.MALFORMED_HTTP]


@pytest.mark.parametrize(("length", "text"), [(2, "three"), (9, "three")])
async def test_a_body_of_another_length_than_supplied_is_cut(
    stage: Stage, length: int, text: str
) -> None:
    prelude = json.dumps({"headers": {"content-length": str(length)}})
    response = await stage.ask(opened(prelude) + chunk(text) + end())
    assert "transfer-encoding" not in response.headers
    assert len(await response.reader.read()) < length
    response.close()
    assert stage.broken() == [Rule.CONTENT_LENGTH]


async def test_a_response_that_cannot_have_a_body_has_none(stage: Stage) -> None:
    prelude = '{"statusCode":204}'
    for steps in (opened(prelude), opened(prelude) + chunk("x")):
        response = await stage.ask(steps + end())
        assert response.status == 204
        assert "transfer-encoding" not in response.headers
        assert await response.body() == b""
        response.close()
        await stage.function.invocations[-1].finished.wait()
    assert stage.broken() == [Rule.BODY_FORBIDDEN]


async def test_error_trailers_are_recorded_and_the_client_sees_a_plain_end(stage: Stage) -> None:
    trailers = error_trailers("ProviderGone", "it went")
    response = await stage.ask(opened() + chunk("half") + end(trailers))
    assert await response.body() == b"half"
    assert not response.cut
    response.close()
    record = stage.function.invocations[0]
    await record.finished.wait()
    assert record.error == "ProviderGone"
    assert record.trailers == trailers


async def test_bad_trailers_are_violations(stage: Stage) -> None:
    trailers = {**error_trailers("Oops", "x"), "X-Other": "1"}
    trailers["Lambda-Runtime-Function-Error-Body"] = "not base64"
    response = await stage.ask(opened(Trailer="X-Other") + end(trailers))
    await response.body()
    response.close()
    await stage.function.invocations[0].finished.wait()
    unannounced = [Rule.TRAILER_UNANNOUNCED, Rule.TRAILER_UNANNOUNCED]
    assert stage.broken() == [*unannounced, Rule.TRAILER_UNKNOWN, Rule.TRAILER_BODY]


async def test_an_error_before_the_response_is_a_502_and_no_violation(stage: Stage) -> None:
    document = '{"errorMessage":"no","errorType":"Bad"}'
    response = await stage.ask([*post({}, call="error", body=document), ["read", None]])
    assert response.status == 502
    assert response.headers["x-amzn-errortype"] == ["InternalServerErrorException"]
    response.close()
    assert stage.function.invocations[0].error == "Bad: no"


@pytest.mark.parametrize(
    ("rule", "steps", "status"),
    [
        (Rule.SECOND_RESPONSE, ["call", ["POST", "/invocation/{id}/response"]], 403),
        (Rule.ERROR_AFTER_START, ["call", ["POST", "/invocation/{id}/error"]], 403),
        (Rule.UNKNOWN_REQUEST_ID, ["call", ["POST", "/invocation/other/response"]], 400),
        (Rule.INIT_ERROR_AFTER_INIT, ["call", ["POST", "/init/error"]], 403),
        (Rule.NEXT_BEFORE_RESPONSE, ["call", ["GET", "/invocation/next"]], 403),
        (Rule.UNKNOWN_PATH, ["call", ["GET", "/invocation/{id}/response"]], 404),
    ],
)
async def test_calls_out_of_order_are_refused_while_the_stream_goes_on(
    stage: Stage, rule: Rule, steps: list[Any], status: int
) -> None:
    verb, (method, path) = steps
    steps = [verb, [method, "/2018-06-01/runtime" + path]]
    response = await stage.ask([*opened(), *chunk("one"), steps, *chunk("two"), *end()])
    assert await response.body() == b"onetwo"
    response.close()
    await stage.function.invocations[0].finished.wait()
    assert stage.broken() == [rule]
    assert f"call {status}" in stage.function.log


async def test_an_echoed_invocation_id_is_checked(stage: Stage) -> None:
    good = opened(**{"Lambda-Runtime-Invocation-Id": "{invocation}"}) + chunk("x") + end()
    response = await stage.ask(good)
    assert await response.body() == b"x"
    response.close()
    bad = opened(**{"Lambda-Runtime-Invocation-Id": "another"})
    response = await stage.ask([*bad, *end(), ["exit", 1]])
    assert response.status == 502
    response.close()
    assert stage.broken() == [Rule.INVOCATION_ID]


async def test_the_connection_of_a_stream_is_not_used_again(stage: Stage) -> None:
    again = [["send", "GET /2018-06-01/runtime/invocation/next HTTP/1.1\r\n\r\n"]]
    last, answer, close = end()
    response = await stage.ask([*opened(), last, answer, *again, close])
    await response.body()
    response.close()
    await stage.function.invocations[0].finished.wait()
    assert stage.broken() == [Rule.CONNECTION_KEPT]


async def test_a_half_response_of_a_process_that_lives_is_a_violation(stage: Stage) -> None:
    steps = [*opened(), *chunk("half"), ["close", None], ["wait", "the client saw it"]]
    response = await stage.ask(steps)
    assert await response.body() == b"half"
    assert response.cut
    response.close()
    await stage.gate.open("the client saw it")
    await stage.function.invocations[0].finished.wait()
    assert stage.broken() == [Rule.TRUNCATED]


async def test_a_crash_is_a_502_before_the_prelude_and_a_cut_after_it(stage: Stage) -> None:
    response = await stage.ask([["exit", 3]])
    assert response.status == 502
    response.close()
    response = await stage.ask([*opened(), *chunk("half"), ["exit", 4]])
    assert await response.body() == b"half"
    assert response.cut
    response.close()
    for record in stage.function.invocations:
        await record.finished.wait()
    errors = [record.error for record in stage.function.invocations]
    assert errors == [f"Runtime exited with error: exit status {code}" for code in (3, 4)]


async def test_a_killed_function_is_started_again_for_the_next_invocation(stage: Stage) -> None:
    response = await stage.ask([*opened(), *chunk("half"), ["hang", None]])
    assert await response.chunk() == b"half"
    await stage.function.kill()
    assert await response.chunk() is None
    assert response.cut
    response.close()
    response = await stage.ask(streamed("whole"))
    assert await response.body() == b"whole"
    response.close()
    assert stage.function.environments_started == 2


async def test_a_hang_past_the_deadline_is_killed_and_cut(stage: Stage) -> None:
    stage.function.timeout_once(0.3)
    response = await stage.ask([*opened(), *chunk("half"), ["hang", None]])
    assert await response.body() == b"half"
    assert response.cut
    response.close()
    record = stage.function.invocations[0]
    await record.finished.wait()
    assert record.error == "Task timed out after 0.30 seconds"
    response = await stage.ask(streamed("new process"))
    assert await response.body() == b"new process"
    response.close()


async def test_work_after_the_response_that_overruns_or_crashes_is_a_violation(
    stage: Stage,
) -> None:
    stage.function.timeout_once(0.3)
    for last in (["hang", None], ["exit", 1]):
        response = await stage.ask([*streamed("whole"), last])
        assert await response.body() == b"whole"
        response.close()
        await stage.function.invocations[-1].finished.wait()
    assert stage.broken() == [Rule.OVERRUN_AFTER_RESPONSE, Rule.EXIT_AFTER_RESPONSE]
