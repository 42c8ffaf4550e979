"""Streams through the deployed path, read by the official SDK.

Keeps C26, C35, C37, C66, C80, C81.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletionChunk

from tests.chat_stream import Json, accumulated, exact
from tests.deployment import PATIENCE_S, Deployment, Workspace
from tests.upstream.speakers import SPEAKERS, Call, Speaker

pytestmark = pytest.mark.asyncio(loop_scope="session")
each_speaker = pytest.mark.parametrize("speaker", SPEAKERS, ids=lambda speaker: speaker.name)

WORDS = ["Each", " word", " comes", " by", " itself", ": é", " 🙂"]
COST = {"alpha": 9 * 1_000 + 3 * 2_000, "bedrock": 9 * 3_000 + 3 * 15_000}


def asked(speaker: Speaker) -> Json:
    return {"model": speaker.model, "messages": [{"role": "user", "content": "Say it"}]}


def word_of(chunk: ChatCompletionChunk) -> str:
    return (chunk.choices[0].delta.content or "") if chunk.choices else ""


@each_speaker
async def test_c35_the_next_chunk_leaves_only_when_the_client_has_read_this_one(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, speaker: Speaker
) -> None:
    upstream = deployment.upstreams.of(speaker)
    chunks = speaker.text(WORDS)
    upstream.enqueue(speaker.script(chunks, lock_step=True))
    asking = asyncio.create_task(client.chat.completions.create(**asked(speaker), stream=True))
    await upstream.release()  # it says hello, which commits nothing
    await upstream.release()
    async with asyncio.timeout(PATIENCE_S):
        stream = await asking
        assert word_of(await anext(stream)) == ""
        for number, word in enumerate(WORDS):
            assert word_of(await anext(stream)) == word
            if number + 1 < len(WORDS):
                await upstream.release()
        for _ in chunks[len(WORDS) + 1 :]:
            await upstream.release()
        finish, usage = [chunk async for chunk in stream]
    assert finish.choices[0].finish_reason == "stop"
    assert usage.usage is not None
    assert usage.usage.total_tokens == 12
    await deployment.assert_books_closed(workspace, COST[speaker.name])


@each_speaker
async def test_c35_holds_for_the_synchronous_sdk_too(
    deployment: Deployment, workspace: Workspace, speaker: Speaker
) -> None:
    upstream = deployment.upstreams.of(speaker)
    chunks = speaker.text(WORDS)
    upstream.enqueue(speaker.script(chunks, lock_step=True))
    loop = asyncio.get_running_loop()

    def release() -> None:
        asyncio.run_coroutine_threadsafe(upstream.release(), loop).result(PATIENCE_S)

    said = await asyncio.to_thread(
        read_in_lock_step, deployment, workspace, (speaker, len(chunks)), release
    )
    assert said == WORDS


def read_in_lock_step(
    deployment: Deployment,
    workspace: Workspace,
    script: tuple[Speaker, int],
    release: Callable[[], None],
) -> list[str]:
    """The words, each read before the next frame is let go."""
    speaker, frames = script
    released = 2
    release()
    release()
    said: list[str] = []
    key = workspace.inference.secret
    url = f"{deployment.emulator.url}/v1"
    with (
        OpenAI(base_url=url, api_key=key, max_retries=0, timeout=PATIENCE_S) as client,
        client.chat.completions.create(**asked(speaker), stream=True) as stream,
    ):
        for chunk in stream:
            if not word_of(chunk):
                continue
            said.append(word_of(chunk))
            # After the last word nothing is due before the stream's end.
            steps = 1 if len(said) < len(WORDS) else frames - released
            for _ in range(steps):
                release()
            released += steps
    return said


@each_speaker
async def test_c26_c66_the_record_is_readable_and_exact_before_done_is_read(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI, speaker: Speaker
) -> None:
    deployment.upstreams.of(speaker).enqueue(speaker.script(speaker.text(WORDS)))
    stream = await client.chat.completions.create(**asked(speaker), stream=True)
    async for chunk in stream:
        if chunk.usage is None:
            continue
        answer = await deployment.ask("GET", f"/v1/generation?id={chunk.id}", workspace.inference)
        assert answer.status == 200
        told = exact(answer.body)["data"]
        assert told["status"] == "ok"
        assert told["total_cost"] == Decimal(str(chunk.usage.model_dump()["cost"]))
        assert told["total_cost"] == Decimal(COST[speaker.name]).scaleb(-9)
        assert told["provider_name"] == speaker.name
        assert told["usage_source"] == "provider"
        break
    else:
        pytest.fail("the stream has no usage frame")
    await stream.close()
    await deployment.assert_books_closed(workspace, COST[speaker.name])


CALLS = [
    Call(id="call_1", name="weather", pieces=['{"city":', ' "Paris"', "}"]),
    Call(id="call_2", name="clock", pieces=['{"zone": "Eur', 'ope/Paris"}']),
]
ANSWERS: dict[str, Callable[[Speaker], list[bytes]]] = {
    "text": lambda speaker: speaker.text(WORDS),
    "tools": lambda speaker: speaker.calls(CALLS),
}


@pytest.mark.parametrize("cut", [1, 7, 64])
@pytest.mark.parametrize("answer", ANSWERS)
@each_speaker
async def test_c37_streamed_and_whole_are_equal_wherever_the_upstream_is_cut(
    deployment: Deployment, client: AsyncOpenAI, speaker: Speaker, answer: str, cut: int
) -> None:
    octets = b"".join(ANSWERS[answer](speaker))
    pieces = [octets[start : start + cut] for start in range(0, len(octets), cut)]
    deployment.upstreams.of(speaker).enqueue(*[speaker.script(pieces)] * 2)
    completions = client.chat.completions.with_streaming_response
    async with completions.create(**asked(speaker), stream=True) as reply:
        streamed = accumulated(await reply.read())
    async with completions.create(**asked(speaker)) as reply:
        whole = exact(await reply.read())
    for body in (streamed, whole):
        for own in ("id", "created", "episode_id"):
            del body[own]
    assert streamed == whole


async def test_c35_c81_a_completion_leaves_word_by_word_too(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    speaker = SPEAKERS[0]
    upstream = deployment.upstreams.of(speaker)
    chunks = speaker.text(WORDS)
    upstream.enqueue(speaker.script(chunks, lock_step=True))
    asking = asyncio.create_task(
        client.completions.create(model=speaker.model, prompt="Say it", stream=True)
    )
    await upstream.release()  # it says hello, which commits nothing
    await upstream.release()
    async with asyncio.timeout(PATIENCE_S):
        stream = await asking
        for number, word in enumerate(WORDS):
            assert (await anext(stream)).choices[0].text == word
            if number + 1 < len(WORDS):
                await upstream.release()
        for _ in chunks[len(WORDS) + 1 :]:
            await upstream.release()
        finish, usage = [chunk async for chunk in stream]
    assert finish.choices[0].finish_reason == "stop"
    assert usage.usage is not None
    assert usage.usage.total_tokens == 12
    await deployment.assert_books_closed(workspace, COST[speaker.name])


@each_speaker
async def test_c35_c80_a_message_leaves_word_by_word_too(
    deployment: Deployment, workspace: Workspace, speaker: Speaker
) -> None:
    upstream = deployment.upstreams.of(speaker)
    chunks = speaker.text(WORDS)
    upstream.enqueue(speaker.script(chunks, lock_step=True))
    key, url = workspace.inference.secret, deployment.emulator.url
    async with (
        AsyncAnthropic(base_url=url, api_key=key, max_retries=0, timeout=PATIENCE_S) as sdk,
        asyncio.timeout(PATIENCE_S),
    ):
        begun = sdk.messages.stream(**asked(speaker), max_tokens=64).__aenter__()
        opening = asyncio.create_task(begun)
        await upstream.release()  # it says hello, which commits nothing
        await upstream.release()
        stream = await opening
        words = stream.text_stream
        for number, word in enumerate(WORDS):
            assert await anext(words) == word
            if number + 1 < len(WORDS):
                await upstream.release()
        for _ in chunks[len(WORDS) + 1 :]:
            await upstream.release()
        message = await stream.get_final_message()
        await stream.close()
    assert (message.stop_reason, message.usage.input_tokens) == ("end_turn", 9)
    assert message.usage.output_tokens == 3
    told = await deployment.ask("GET", f"/v1/generation?id={message.id}", workspace.inference)
    assert exact(told.body)["data"]["ingress_format"] == "messages"
    await deployment.assert_books_closed(workspace, COST[speaker.name])
