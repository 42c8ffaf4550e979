"""The batches of one attempt are held in memory together, which has a bound.

Keeps C81.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.scripted import Scripted, frame
from tests.unit.ingress.samples import chat_completions
from tests.unit.routing.catalogs import catalog, plan_of, principal
from tollgate.core.buffer_budget import ProcessBuffers
from tollgate.core.errors import BufferFull
from tollgate.core.events import Output, Started
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.engine.work.batches import EncodedBatches, encode_work
from tollgate.providers.ports.base import BatchCodec, Provider, WireRequest
from tollgate.routing.planning.plan import Attempt

WORK = EmbeddingRequest(model="m", texts=("a",))
BODY = b'{"model": "acme/large", "messages": [{"role": "user", "content": "Hi"}]}'


def refuse(*_: Any) -> Any:
    raise AssertionError("this is not called here")


def an_attempt() -> Attempt:
    plan = plan_of(catalog(), chat_completions().parse(BODY).request, principal=principal())
    return plan.attempts[0]


def codec_of(count: int, *, piece: bytes, tokens: int) -> BatchCodec[EmbeddingRequest]:
    """A codec that makes so many batches, each of which is answered with one piece."""
    return BatchCodec(
        split=lambda work, _: (work,) * count,
        encode=lambda *_: WireRequest(path="/", body={}),
        decode=lambda *_: WorkResult(pieces=(piece,), usage=Usage(uncached_input_tokens=tokens)),
        error=refuse,
    )


def encoded_batches(
    count: int, *, piece: bytes = b"{}", tokens: int = 1, stream: bool = False
) -> EncodedBatches:
    provider = Provider(
        None,
        Scripted([frame({})]),
        batch_codecs={"embedding": lambda: codec_of(count, piece=piece, tokens=tokens)},
        stream_codecs={"embedding": refuse},
    )
    encoded = encode_work(provider, an_attempt(), replace(WORK, stream=stream))
    assert isinstance(encoded, EncodedBatches)
    return encoded


async def events_of(batches: EncodedBatches, seen: list[Any] | None = None) -> list[Any]:
    seen = [] if seen is None else seen
    async with batches.open() as events:
        async for together in events:
            seen += [event for _, event in together]
    return seen


async def test_c47_c81_results_of_all_batches_together_have_a_bound() -> None:
    half, process = bytes(500), ProcessBuffers(request_bytes_max=1000)
    with process.open("acme"):
        whole = await events_of(encoded_batches(2, piece=half))
        assert [len(event.pieces) for event in whole if isinstance(event, Output)] == [2]
        # The receiver of the output takes its bytes.
        assert process.size == 0
        with pytest.raises(BufferFull):
            await events_of(encoded_batches(3, piece=half))


async def test_c47_c81_too_large_a_result_commits_so_that_its_whole_input_is_billed() -> None:
    seen: list[Any] = []
    with ProcessBuffers(request_bytes_max=1000).open("acme"), pytest.raises(BufferFull):
        await events_of(encoded_batches(3, piece=bytes(500), tokens=7), seen)
    assert [type(event) for event in seen] == [Started, Output]


async def test_c81_work_of_several_batches_is_not_streamed_of_which_one_would_be_lost() -> None:
    (answer,) = [
        event
        for event in await events_of(encoded_batches(2, stream=True))
        if isinstance(event, Output)
    ]
    assert len(answer.pieces) == 2
