"""What comes whole over a connection: results that are no streams.

Keeps C81.
"""

import pytest

from tests.functional.providers.one_provider import AWS, CHAT, OneProvider
from tests.upstream import FakeUpstream, Script
from tollgate.core.errors import UpstreamError
from tollgate.core.work.base import WorkResult
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.providers.ports.base import Target, Timeouts
from tollgate.providers.ports.dialect import Dialect

VECTOR = [0.25, 0.5, 0.75, 1.0]
TARGET = Target(
    provider="acme",
    model="acme/vec",
    upstream_model="v:1",
    dimensions=4,
    dialect=Dialect.model_validate({"embeddings": {"family": "titan"}}),
)


async def embedded(provider: OneProvider, transport: str) -> WorkResult:
    """The result of one text, as the engine asks for it."""
    made = provider.provider(transport)
    codec = made.batch_codecs["embedding"]()
    work = EmbeddingRequest(model="acme/vec", texts=("a",))
    wire = codec.encode(work, TARGET)
    async with made.transport.open(wire, Timeouts(connect_s=5)) as frames:
        [together] = [each async for each in frames]
    return codec.decode(together[-1], work, TARGET)


async def test_a_list_comes_whole(upstream: FakeUpstream, provider: OneProvider) -> None:
    reply = {"data": [{"index": 0, "embedding": VECTOR}], "usage": {"prompt_tokens": 3}}
    upstream.enqueue(Script.json(200, reply))
    result = await embedded(provider, CHAT)
    assert (result.pieces, result.usage.input_tokens) == ((b"[0.25, 0.5, 0.75, 1.0]",), 3)
    (received,) = upstream.received
    assert received.path == "/embeddings"
    assert received.headers["accept"] == "application/json"
    assert received.headers["authorization"] == "Bearer sk-secret"


async def test_bedrock_counts_in_a_header_and_its_request_is_signed(
    upstream: FakeUpstream, provider: OneProvider
) -> None:
    upstream.enqueue(Script.json(200, {"embedding": VECTOR}, X_Amzn_Bedrock_Input_Token_Count="3"))
    assert (await embedded(provider, AWS)).usage.input_tokens == 3
    (received,) = upstream.received
    assert received.path == "/model/v%3A1/invoke"
    assert received.headers["accept"] == "application/json"
    assert "/eu-west-1/bedrock/aws4_request" in received.headers["authorization"]


@pytest.mark.parametrize("transport", [CHAT, AWS])
async def test_a_reply_larger_than_its_vectors_can_be_is_an_error(
    upstream: FakeUpstream, provider: OneProvider, transport: str
) -> None:
    piece = b" " * (1024 * 1024)
    upstream.enqueue(Script(headers={"content-type": "application/json"}, chunks=[piece] * 2))
    with pytest.raises(UpstreamError, match="more than"):
        await embedded(provider, transport)
