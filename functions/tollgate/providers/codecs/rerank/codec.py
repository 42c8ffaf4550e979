"""Encodes a query with its documents, and checks the ranking in the answer.

The formats are Jina's, which vLLM and others share (https://jina.ai/reranker), Voyage's with `data`
and `top_k`, Cohere's v2 (https://docs.cohere.com/reference/rerank), and Cohere's body on Bedrock's
InvokeModel (Bedrock user guide), all seen 2026-11-22.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from msgspec import Struct
from pydantic_core import to_json

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.reranking import RerankRequest
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.shared.bedrock import error_of_bedrock_reply
from tollgate.providers.shared.counts import count_of
from tollgate.providers.shared.openai_errors import parse_openai_reply_error
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.shared.vectors import parse_body

_REPLY_BYTES_MAX: Final = 8 * 1024 * 1024
_BEDROCK_VERSION: Final = 2
_TOKENS: Final = ("total_tokens", "prompt_tokens")


class _Ranked(Struct, frozen=True):
    index: int
    relevance_score: float


class _Units(Struct, frozen=True):
    search_units: object = None
    input_tokens: object = None


class _Meta(Struct, frozen=True):
    billed_units: _Units | None = None


class _Body(Struct, frozen=True):
    results: list[_Ranked] | None = None
    data: list[_Ranked] | None = None
    usage: object = None
    meta: _Meta | None = None
    id: object = None


def whole_work(work: RerankRequest, target: Target) -> Sequence[RerankRequest]:
    """Return the work as one batch, because scores of different batches are not comparable."""
    return (work,)


def encode_jina(work: RerankRequest, target: Target) -> WireRequest:
    """Encode a request in Jina's format; the dialect names the field for the number of
    documents.
    """
    dialect = target.dialect.rerank
    body = _fields(work, limit_field=dialect.limit_field) | {"model": target.upstream_model}
    return _wire(dialect.path or "/rerank", body)


def encode_cohere(work: RerankRequest, target: Target) -> WireRequest:
    """Encode a request in Cohere's v2 format."""
    body = _fields(work) | {"model": target.upstream_model}
    return _wire(target.dialect.rerank.path or "/v2/rerank", body)


def encode_bedrock(work: RerankRequest, target: Target) -> WireRequest:
    """Encode a request for InvokeModel."""
    path = f"/model/{quote(target.upstream_model, safe='')}/invoke"
    return _wire(path, {**_fields(work), "api_version": _BEDROCK_VERSION})


def decode_ranking(frame: Frame, work: RerankRequest, target: Target) -> WorkResult:
    """Decode an answer; raise UpstreamError if a document is unknown or ranked twice."""
    body = parse_body(frame.data, _Body, target)
    ranked = sorted(body.results or body.data or (), key=lambda entry: -entry.relevance_score)
    places = {entry.index for entry in ranked}
    count = min(work.results_max or len(work.documents), len(work.documents))
    if (
        len(ranked) != count
        or len(places) != count
        or not places <= set(range(len(work.documents)))
    ):
        raise malformed_error(
            target.provider, f"a ranking that does not have {count} different documents"
        )
    usage, raw = _usage(body, by_tokens=target.dialect.rerank.by_tokens)
    return WorkResult(
        pieces=tuple(
            to_json({"index": entry.index, "relevance_score": entry.relevance_score})
            for entry in ranked
        ),
        usage=usage,
        raw_usage=raw,
        upstream_id=body.id if isinstance(body.id, str) else None,
    )


def _fields(work: RerankRequest, *, limit_field: str = "top_n") -> dict[str, JsonValue]:
    limit = min(work.results_max or len(work.documents), len(work.documents))
    return {"query": work.query, "documents": list(work.documents), limit_field: limit}


def _wire(path: str, body: dict[str, JsonValue]) -> WireRequest:
    return WireRequest(path=path, body=body, reply_bytes_max=_REPLY_BYTES_MAX)


def _usage(body: _Body, *, by_tokens: bool) -> tuple[Usage, JsonValue]:
    """Return the usage and its raw report.

    If the provider reports search units, missing tokens count as 0. With `by_tokens`, search units
    are ignored, and missing tokens stay None.
    """
    billed = body.meta.billed_units if body.meta else None
    units = count_of(billed.search_units) if billed else None
    reported = body.usage if isinstance(body.usage, dict) else {}
    counted = count_of(billed.input_tokens) if billed else None
    counts = (*(count_of(reported.get(name)) for name in _TOKENS), counted)
    tokens = next((count for count in counts if count is not None), None)
    named = {"search_units": units, "input_tokens": counted}
    raw: dict[str, JsonValue] = {
        **reported,
        **{name: count for name, count in named.items() if count is not None},
    }
    if units is None or by_tokens:
        usage = Usage(uncached_input_tokens=tokens, output_tokens=0)
        return usage, None if tokens is None and units is None else raw
    return Usage(search_units=units, uncached_input_tokens=tokens or 0, output_tokens=0), raw


JINA_CODEC: Final = BatchCodec(
    split=whole_work, encode=encode_jina, decode=decode_ranking, error=parse_openai_reply_error
)


COHERE_CODEC: Final = BatchCodec(
    split=whole_work, encode=encode_cohere, decode=decode_ranking, error=parse_openai_reply_error
)


BEDROCK_CODEC: Final = BatchCodec(
    split=whole_work, encode=encode_bedrock, decode=decode_ranking, error=error_of_bedrock_reply
)
