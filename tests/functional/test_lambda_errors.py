"""What goes wrong upstream, as a client of the deployed path sees it before and after the start.

Keeps C33, C40, C43, C44.
"""

from __future__ import annotations

import pytest
from openai import APIError, APIStatusError, AsyncOpenAI

from tests.chat_stream import Json, frames
from tests.deployed_functions import ALPHA_KEY
from tests.deployment import (
    Deployment,
    Workspace,
)
from tests.upstream import Script
from tests.upstream.server import End
from tests.upstream.speakers import BEDROCK, OPENAI, SECRET_WORDS, SPEAKERS, Speaker
from tollgate.core.records.generation import GenerationRecord

pytestmark = pytest.mark.asyncio(loop_scope="session")
each_speaker = pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)

LEAKED = f"{SECRET_WORDS}, key {ALPHA_KEY}"


def openai_refusal(status: int, code: str | None = None, **headers: str) -> tuple[Speaker, Script]:
    error = {"message": LEAKED, "type": "some_error", "code": code}
    return OPENAI, Script.json(status, {"error": error}, **headers)


def aws_refusal(status: int, name: str, message: str = LEAKED) -> tuple[Speaker, Script]:
    return BEDROCK, Script.json(status, {"message": message}, x_amzn_errortype=f"{name}:http://aws")


# What the provider answers, how often it is asked; then the status, code and type that come of it.
REFUSALS = {
    "401": (openai_refusal(401, "invalid_api_key"), 1, 502, "provider_auth", "server_error"),
    "403": (openai_refusal(403), 1, 502, "provider_auth", "server_error"),
    "429": (
        openai_refusal(429, retry_after="7"),
        1,
        429,
        "provider_rate_limit",
        "rate_limit_error",
    ),
    "529": (openai_refusal(529), 2, 529, "provider_overloaded", "server_error"),
    "500": (openai_refusal(500), 2, 502, "provider_unavailable", "server_error"),
    "context": (
        openai_refusal(400, "context_length_exceeded"),
        1,
        400,
        "context_length_exceeded",
        "invalid_request_error",
    ),
    "filter": (
        openai_refusal(400, "content_filter"),
        1,
        400,
        "content_filter",
        "invalid_request_error",
    ),
    "aws 403": (
        aws_refusal(403, "AccessDeniedException"),
        1,
        502,
        "provider_auth",
        "server_error",
    ),
    "aws 429": (
        aws_refusal(429, "ThrottlingException"),
        2,
        429,
        "provider_rate_limit",
        "rate_limit_error",
    ),
    "aws 503": (
        aws_refusal(503, "ServiceUnavailableException"),
        2,
        529,
        "provider_overloaded",
        "server_error",
    ),
    "aws context": (
        aws_refusal(400, "ValidationException", "Input is too long for requested model."),
        1,
        400,
        "context_length_exceeded",
        "invalid_request_error",
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("refusal", "asked", "status", "code", "type_"), REFUSALS.values(), ids=REFUSALS
)
async def test_c33_c40_c44_a_refusal_before_the_first_token_has_its_status(
    deployment: Deployment,
    workspace: Workspace,
    client: AsyncOpenAI,
    *,
    refusal: tuple[Speaker, Script],
    asked: int,
    status: int,
    code: str,
    type_: str,
    stream: bool,
) -> None:
    speaker, script = refusal
    upstream = deployment.upstreams.of(speaker)
    upstream.enqueue(*[script] * asked)
    with pytest.raises(APIStatusError) as raised:
        await client.chat.completions.create(**question(speaker), stream=stream)
    response = raised.value.response
    assert response.status_code == status
    error = response.json()["error"]
    assert set(error) == {"message", "type", "code", "param", "request_id"}
    assert (error["code"], error["type"]) == (code, type_)
    assert error["request_id"] == response.headers["x-request-id"]
    assert_nothing_leaked(deployment, response.text)
    record = await deployment.record(workspace, response.headers["x-generation-id"])
    assert (record.outcome, record.error, record.cost_nano_usd) == ("error", code, 0)
    await deployment.assert_books_closed(workspace, 0)


def question(speaker: Speaker) -> Json:
    return {"model": speaker.model, "messages": [{"role": "user", "content": "Say it"}]}


def assert_nothing_leaked(deployment: Deployment, text: str) -> None:
    """Neither keys nor addresses nor what the provider said of its account (C44)."""
    for secret in (ALPHA_KEY, "123456789012", "internal.example", "sk-secret", "127.0.0.1"):
        assert secret not in text
        assert secret not in deployment.chat.log


@pytest.mark.parametrize(
    ("headers", "wait"), [({"retry_after": "7"}, "7"), ({"retry_after": "0.02"}, "1"), ({}, "5")]
)
async def test_c43_retry_after_is_whole_seconds_and_at_least_one(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, *, headers: Json, wait: str
) -> None:
    speaker, script = openai_refusal(429, **headers)
    deployment.upstreams.alpha.enqueue(*[script] * (1 if wait == "7" else 2))
    with pytest.raises(APIStatusError) as raised:
        await client.chat.completions.create(**question(speaker))
    assert raised.value.response.headers["retry-after"] == wait


async def test_a_missing_provider_key_names_the_variable_to_set(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    with pytest.raises(APIStatusError) as raised:
        await client.chat.completions.create(
            model="keyless/one", messages=[{"role": "user", "content": "Hi"}], stream=True
        )
    assert raised.value.status_code == 502
    assert raised.value.code == "provider_auth"
    assert "KEYLESS_API_KEY" in raised.value.message
    await deployment.assert_books_closed(workspace, 0)


@each_speaker
async def test_c33_a_provider_that_closes_without_an_answer_is_unavailable(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, speaker: Speaker
) -> None:
    closes = Script(before_headers="close")
    deployment.upstreams.of(speaker).enqueue(closes, closes)
    with pytest.raises(APIStatusError) as raised:
        await client.chat.completions.create(**question(speaker), stream=True)
    assert (raised.value.status_code, raised.value.code) == (502, "provider_unavailable")
    assert_nothing_leaked(deployment, raised.value.response.text)
    await deployment.assert_books_closed(workspace, 0)


def broken_streams(speaker: Speaker) -> dict[str, tuple[bytes, End]]:
    """What follows the first word of an answer that breaks."""
    more = speaker.begun([" world"])[-1]
    half = more[: len(more) // 2]
    return {
        "closes": (speaker.silence, "close"),
        "resets": (speaker.silence, "reset"),
        "ends early": (speaker.silence, "clean"),
        "garbage": (speaker.garbage, "clean"),
        "an error": (speaker.error, "clean"),
        "a truncated frame": (half, "clean"),
        "a truncated frame, then closes": (half, "close"),
    }


BROKEN = [
    pytest.param(speaker, rest, end, id=f"{speaker.name}-{name}")
    for speaker in SPEAKERS
    for name, (rest, end) in broken_streams(speaker).items()
]


@pytest.mark.parametrize(("speaker", "rest", "end"), BROKEN)
async def test_c33_a_break_after_the_first_token_is_told_in_band(
    deployment: Deployment,
    workspace: Workspace,
    client: AsyncOpenAI,
    *,
    speaker: Speaker,
    rest: bytes,
    end: End,
) -> None:
    upstream = deployment.upstreams.of(speaker)
    begun = speaker.begun(["Hello"])
    upstream.enqueue(speaker.script([*begun, rest], end=end, lock_step=True))
    for _ in begun:
        await upstream.release()
    body = b""
    completions = client.chat.completions.with_streaming_response
    async with completions.create(**question(speaker), stream=True) as reply:
        assert reply.status_code == 200
        async for piece in reply.iter_bytes():
            body += piece
            if b"Hello" in piece:
                await upstream.release()
    *said, last = frames(body)
    assert "".join(frame["choices"][0]["delta"]["content"] for frame in said) == "Hello"
    assert "choices" not in last
    code = "provider_overloaded" if rest == speaker.error else "provider_unavailable"
    assert last["error"]["code"] == code
    assert last["error"]["type"] == "server_error"
    assert f"gen-{last['error']['request_id']}" == last["id"]
    assert not [frame for frame in said if frame["choices"][0]["finish_reason"]]
    assert "usage" in last
    assert_nothing_leaked(deployment, body.decode())
    assert len(upstream.received) == 1, "retried after the first content byte"
    record = await deployment.record(workspace, last["id"])
    assert_broken(record, code)
    await deployment.assert_books_closed(workspace, 0)


def assert_broken(record: GenerationRecord, code: str) -> None:
    """Assert that a generation broke by its provider (C33) cost its caller nothing."""
    assert (record.outcome, record.error, record.cost_nano_usd) == ("error", code, 0)
    assert [attempt.error for attempt in record.attempts] == [code]


@each_speaker
async def test_c33_the_sdk_hands_out_the_words_and_then_raises(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, speaker: Speaker
) -> None:
    upstream = deployment.upstreams.of(speaker)
    begun = speaker.begun(["Hello"])
    upstream.enqueue(speaker.script([*begun, speaker.error], lock_step=True))
    for _ in begun:
        await upstream.release()
    stream = await client.chat.completions.create(**question(speaker), stream=True)
    said = [(await anext(stream)).choices[0].delta.content for _ in begun]
    assert said == ["", "Hello"]
    await upstream.release()
    with pytest.raises(APIError) as raised:
        await anext(stream)
    assert raised.value.code == "provider_overloaded"


@each_speaker
async def test_a_break_is_an_error_with_its_status_where_nothing_was_streamed(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, speaker: Speaker
) -> None:
    deployment.upstreams.of(speaker).enqueue(speaker.script(speaker.begun(["Hello"]), end="close"))
    with pytest.raises(APIStatusError) as raised:
        await client.chat.completions.create(**question(speaker))
    assert (raised.value.status_code, raised.value.code) == (502, "provider_unavailable")
    await deployment.assert_books_closed(workspace, 0)
