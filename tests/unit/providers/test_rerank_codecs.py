"""C81: what each format sends to rank documents, and reads of a documented answer.

The answers are written after the documentation that the codec names; none is recorded.
"""

import json
from typing import Any

import pytest

from tollgate.core.errors import UpstreamError
from tollgate.core.work.reranking import RerankRequest
from tollgate.providers.ports.base import Frame, Target, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import WIRE_FORMATS

WORK = RerankRequest(model="acme/r", query="q", documents=("a", "b"), results_max=5)
ITEMS = [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": 0.25}]


def target(**dialect: Any) -> Target:
    return Target(
        provider="there",
        model="acme/r",
        upstream_model="r:1",
        dialect=Dialect.model_validate({"rerank": dialect}),
    )


def sent(format_: str, **dialect: Any) -> WireRequest:
    codec = WIRE_FORMATS[format_].batch_codecs["rerank"]()
    [batch] = codec.split(WORK, target())
    return codec.encode(batch, target(**dialect))


def test_what_is_sent() -> None:
    fields = {"query": "q", "documents": ["a", "b"], "top_n": 2}
    jina, cohere, bedrock = (sent(name) for name in ("openai_chat", "cohere", "bedrock"))
    assert (jina.path, jina.body) == ("/rerank", {**fields, "model": "r:1"})
    assert (cohere.path, cohere.body) == ("/v2/rerank", {**fields, "model": "r:1"})
    assert bedrock.path == "/model/r%3A1/invoke"
    assert bedrock.body == {**fields, "api_version": 2}
    voyage = sent("openai_chat", limit_field="top_k", path="/v1/rank")
    assert (voyage.path, voyage.body["top_k"]) == ("/v1/rank", 2)
    # An answer is read whole, and no further than that.
    assert {it.reply_bytes_max for it in (jina, cohere, bedrock)} == {8 * 1024 * 1024}


@pytest.mark.parametrize(
    ("answer", "tokens", "units"),
    [
        ({"results": ITEMS, "usage": {"total_tokens": 7}}, 7, None),
        ({"object": "list", "data": ITEMS, "usage": {"total_tokens": 7}}, 7, None),
        ({"results": ITEMS, "meta": {"billed_units": {"search_units": 1}}}, 0, 1),
        ({"results": ITEMS}, None, None),
        ({"results": ITEMS, "usage": {"total_tokens": -7}}, None, None),
        ({"results": ITEMS, "meta": {"billed_units": {"input_tokens": 7}}}, 7, None),
        (
            {"results": ITEMS, "meta": {"billed_units": {"search_units": 1, "input_tokens": 7}}},
            7,
            1,
        ),
    ],
)
def test_what_is_read(answer: Any, tokens: int | None, units: int | None) -> None:
    codec = WIRE_FORMATS["cohere"].batch_codecs["rerank"]()
    result = codec.decode(Frame(data=json.dumps(answer).encode()), WORK, target())
    assert [json.loads(piece) for piece in result.pieces] == ITEMS
    usage = result.usage
    assert (usage.uncached_input_tokens, usage.search_units) == (tokens, units)


def test_where_tokens_are_charged_for_units_stand_for_nothing() -> None:
    codec = WIRE_FORMATS["cohere"].batch_codecs["rerank"]()
    for billed, tokens in (
        ({"search_units": 1}, None),
        ({"search_units": 1, "input_tokens": 7}, 7),
    ):
        answer = {"results": ITEMS, "meta": {"billed_units": billed}}
        frame = Frame(data=json.dumps(answer).encode())
        result = codec.decode(frame, WORK, target(by_tokens=True))
        usage = result.usage
        assert (usage.uncached_input_tokens, usage.search_units) == (tokens, None)
        assert result.raw_usage == billed


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"results": [1]}'])
def test_what_is_no_answer_is_the_providers_fault(body: bytes) -> None:
    codec = WIRE_FORMATS["openai_chat"].batch_codecs["rerank"]()
    with pytest.raises(UpstreamError):
        codec.decode(Frame(data=body), WORK, target())
