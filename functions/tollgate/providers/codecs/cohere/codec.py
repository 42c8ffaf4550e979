"""Cohere's embeddings: https://docs.cohere.com/reference/embed (2026-11-22)."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.shared.counts import count_of
from tollgate.providers.shared.openai_errors import parse_openai_reply_error
from tollgate.providers.shared.vectors import (
    COHERE_INPUTS_MAX,
    VectorsByType,
    checked_vectors,
    cohere_fields,
    parse_body,
    raw_vectors,
    reply_bytes_max,
)


class _Units(Struct, frozen=True):
    input_tokens: object = None


class _Meta(Struct, frozen=True):
    billed_units: _Units = _Units()


class _Body(Struct, frozen=True):
    embeddings: VectorsByType
    id: object = None
    meta: _Meta = _Meta()


def split_for_cohere(work: EmbeddingRequest, target: Target) -> Sequence[EmbeddingRequest]:
    """Return the work in batches, each within Cohere's input limit."""
    return work.split(min(target.dialect.embeddings.inputs_max, COHERE_INPUTS_MAX))


def encode(work: EmbeddingRequest, target: Target) -> WireRequest:
    return WireRequest(
        path=target.dialect.embeddings.path or "/v2/embed",
        body={"model": target.upstream_model, **cohere_fields(work, target)},
        reply_bytes_max=reply_bytes_max(work, target),
    )


def decode(frame: Frame, work: EmbeddingRequest, target: Target) -> WorkResult:
    body = parse_body(frame.data, _Body, target)
    tokens = count_of(body.meta.billed_units.input_tokens)
    return WorkResult(
        pieces=checked_vectors(raw_vectors(body.embeddings), work, target),
        usage=Usage(uncached_input_tokens=tokens, output_tokens=0),
        raw_usage=None if tokens is None else {"billed_units": {"input_tokens": tokens}},
        upstream_id=body.id if isinstance(body.id, str) else None,
    )


CODEC: Final = BatchCodec(
    split=split_for_cohere, encode=encode, decode=decode, error=parse_openai_reply_error
)
