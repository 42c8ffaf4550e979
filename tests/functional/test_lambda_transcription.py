"""Recordings through the deployed path, sent and read by the official SDK.

Keeps C7, C8, C82.
"""

from __future__ import annotations

import pytest
from openai import APIStatusError, AsyncOpenAI

from tests.deployment import BODY_BYTES_MAX, Deployment, Workspace
from tests.unit.ingress.recordings import wav

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Bytes that are no text in UTF-8: API Gateway would replace them if it took them for text.
SOUND = wav(24_000)[:44] + bytes(range(256)) * 187 + b"\xff" * 128
# 1.5 s at 0.36 dollars an hour, each second that began.
COST_NANO_USD = 200_000


async def test_c7_c82_a_recording_reaches_its_function_unbroken(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    written = await client.audio.transcriptions.create(
        model="test/transcribe",
        file=("a.wav", SOUND),
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert written.duration == 1.5
    assert [word.word for word in written.words or ()] == written.text.split()
    assert [segment.text for segment in written.segments or ()] == [written.text]
    await deployment.assert_books_closed(workspace, COST_NANO_USD)


async def test_c7_c35_c82_a_transcript_is_streamed(
    deployment: Deployment, workspace: Workspace, client: AsyncOpenAI
) -> None:
    stream = await client.audio.transcriptions.create(
        model="test/transcribe", file=("a.wav", SOUND), stream=True
    )
    *deltas, done = [event async for event in stream]
    assert done.type == "transcript.text.done"
    assert "".join(each.delta for each in deltas) == done.text  # type: ignore[union-attr]
    await deployment.assert_books_closed(workspace, COST_NANO_USD)


async def test_c7_c82_subtitles_are_a_text(client: AsyncOpenAI) -> None:
    written = await client.audio.transcriptions.create(
        model="test/transcribe", file=("a.wav", SOUND), response_format="srt"
    )
    assert str(written).startswith("1\n00:00:00,000 --> 00:00:01,500\n")


async def test_c8_c43_c82_a_recording_beyond_the_body_limit_may_be_named_by_url(
    client: AsyncOpenAI,
) -> None:
    with pytest.raises(APIStatusError) as caught:
        await client.audio.transcriptions.create(
            model="test/transcribe", file=("a.wav", wav(BODY_BYTES_MAX // 2))
        )
    assert caught.value.status_code == 413
    assert "url instead of file" in caught.value.message
