"""Embeddings by Titan, Nova and Cohere on InvokeModel.

Bedrock user guide, "Amazon Titan Embeddings Text" and "Cohere Embed v4"; Nova user guide, "Complete
embeddings request and response schema" (2026-11-22). The number of tokens is in the reply's header
`X-Amzn-Bedrock-Input-Token-Count` ("InvokeModel").
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from msgspec import Raw, Struct

from tollgate.core.json_value import JsonValue
from tollgate.core.request import InputType
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.ports.work_dialects import EmbeddingFamily
from tollgate.providers.shared.bedrock import error_of_bedrock_reply
from tollgate.providers.shared.counts import count_of
from tollgate.providers.shared.vectors import (
    COHERE_INPUTS_MAX,
    VectorsByType,
    checked_vectors,
    cohere_fields,
    parse_body,
    raw_vectors,
    reply_bytes_max,
    sent_dimensions,
)

_COUNT_HEADER: Final = "x-amzn-bedrock-input-token-count"
_NOVA_PURPOSES: Final[Mapping[InputType, str]] = {
    "query": "TEXT_RETRIEVAL",
    "document": "GENERIC_INDEX",
    "classification": "CLASSIFICATION",
    "clustering": "CLUSTERING",
}


class _TitanBody(Struct, frozen=True):
    embedding: Raw


class _NovaVector(Struct, frozen=True):
    embedding: Raw


class _NovaBody(Struct, frozen=True):
    embeddings: list[_NovaVector]


class _CohereBody(Struct, frozen=True):
    embeddings: VectorsByType | list[Raw]
    """The vectors: a list from Cohere Embed v3, an object with a list per number type from v4."""


def _titan(work: EmbeddingRequest, target: Target) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = {"inputText": work.texts[0]}
    dimensions = sent_dimensions(work, target)
    return body if dimensions is None else {**body, "dimensions": dimensions}


def _nova(work: EmbeddingRequest, target: Target) -> dict[str, JsonValue]:
    purpose = _NOVA_PURPOSES[work.input_type or "document"]
    size = work.dimensions or target.dimensions
    text: JsonValue = {"truncationMode": "NONE", "value": work.texts[0]}
    parameters: JsonValue = {"embeddingPurpose": purpose, "embeddingDimension": size, "text": text}
    return {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": parameters}


def _titan_vectors(data: bytes, target: Target) -> list[bytes]:
    return [bytes(parse_body(data, _TitanBody, target).embedding)]


def _nova_vectors(data: bytes, target: Target) -> list[bytes]:
    return [bytes(vector.embedding) for vector in parse_body(data, _NovaBody, target).embeddings]


def _cohere_vectors(data: bytes, target: Target) -> list[bytes]:
    return raw_vectors(parse_body(data, _CohereBody, target).embeddings)


class _Family(Struct, frozen=True, kw_only=True):
    """The request and answer bodies of one model family."""

    inputs_max: int
    body: Callable[[EmbeddingRequest, Target], dict[str, JsonValue]]
    vectors: Callable[[bytes, Target], list[bytes]]
    takes_use: bool = True


_FAMILIES: Final[Mapping[EmbeddingFamily, _Family]] = {
    "cohere": _Family(inputs_max=COHERE_INPUTS_MAX, body=cohere_fields, vectors=_cohere_vectors),
    "nova": _Family(inputs_max=1, body=_nova, vectors=_nova_vectors),
    "titan": _Family(inputs_max=1, body=_titan, vectors=_titan_vectors, takes_use=False),
}


def split_by_family(work: EmbeddingRequest, target: Target) -> Sequence[EmbeddingRequest]:
    """Return the work in batches, each within the input limit of the model family."""
    dialect = target.dialect.embeddings
    return work.split(min(dialect.inputs_max, _FAMILIES[dialect.family].inputs_max))


def encode(work: EmbeddingRequest, target: Target) -> WireRequest:
    """Encode one batch in the format of the model family."""
    family = _FAMILIES[target.dialect.embeddings.family]
    ignores_use = work.input_type is not None and not family.takes_use
    return WireRequest(
        path=f"/model/{quote(target.upstream_model, safe='')}/invoke",
        body=family.body(work, target),
        adapted=("input_type",) if ignores_use else (),
        reply_bytes_max=reply_bytes_max(work, target),
    )


def decode(frame: Frame, work: EmbeddingRequest, target: Target) -> WorkResult:
    vectors = _FAMILIES[target.dialect.embeddings.family].vectors(frame.data, target)
    tokens = count_of(frame.headers.get(_COUNT_HEADER))
    return WorkResult(
        pieces=checked_vectors(vectors, work, target),
        usage=Usage(uncached_input_tokens=tokens, output_tokens=0),
        raw_usage=None if tokens is None else {_COUNT_HEADER: tokens},
        upstream_id=frame.headers.get("x-amzn-requestid"),
    )


CODEC: Final = BatchCodec(
    split=split_by_family, encode=encode, decode=decode, error=error_of_bedrock_reply
)
