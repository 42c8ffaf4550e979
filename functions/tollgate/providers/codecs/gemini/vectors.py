"""Embeddings by Gemini: `batchEmbedContents` on AI Studio, `predict` on Vertex AI.

https://ai.google.dev/api/embeddings, and "Text embeddings API" of Vertex AI (2026-11-22). Only
Vertex AI reports the number of tokens in an input.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Raw, Struct

from tollgate.core.json_value import JsonValue
from tollgate.core.request import InputType
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.providers.codecs.gemini.errors import error_of_reply
from tollgate.providers.codecs.gemini.wire import model_path
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.shared.counts import count_of
from tollgate.providers.shared.vectors import (
    checked_vectors,
    parse_body,
    reply_bytes_max,
    sent_dimensions,
    split_inputs,
)

_TASKS: Final[Mapping[InputType, str]] = {
    "query": "RETRIEVAL_QUERY",
    "document": "RETRIEVAL_DOCUMENT",
    "classification": "CLASSIFICATION",
    "clustering": "CLUSTERING",
}


class _Statistics(Struct, frozen=True):
    token_count: object = None


class _Values(Struct, frozen=True):
    values: Raw
    statistics: _Statistics = _Statistics()


class _Prediction(Struct, frozen=True):
    embeddings: _Values


class _Predictions(Struct, frozen=True):
    predictions: list[_Prediction]


class _Batch(Struct, frozen=True):
    embeddings: list[_Values]


def encode_inputs(work: EmbeddingRequest, target: Target) -> WireRequest:
    """Encode one batch for Vertex AI if the row has a project, else for AI Studio."""
    on_vertex = target.project is not None
    return WireRequest(
        path=model_path(target) + (":predict" if on_vertex else ":batchEmbedContents"),
        body=_instances(work, target) if on_vertex else _requests(work, target),
        reply_bytes_max=reply_bytes_max(work, target),
    )


def decode_vectors(frame: Frame, work: EmbeddingRequest, target: Target) -> WorkResult:
    if target.project is not None:
        predictions = parse_body(frame.data, _Predictions, target).predictions
        vectors = [prediction.embeddings for prediction in predictions]
    else:
        vectors = parse_body(frame.data, _Batch, target).embeddings
    counts = [count_of(vector.statistics.token_count) for vector in vectors]
    known_counts = [count for count in counts if count is not None]
    tokens = sum(known_counts) if len(known_counts) == len(vectors) else None
    return WorkResult(
        pieces=checked_vectors([bytes(vector.values) for vector in vectors], work, target),
        usage=Usage(uncached_input_tokens=tokens, output_tokens=0),
        raw_usage=None if tokens is None else {"token_count": tokens},
    )


def _requests(work: EmbeddingRequest, target: Target) -> dict[str, JsonValue]:
    options: dict[str, JsonValue] = {"model": f"models/{target.upstream_model}"}
    if work.input_type is not None:
        options["taskType"] = _TASKS[work.input_type]
    if (dimensions := sent_dimensions(work, target)) is not None:
        options["outputDimensionality"] = dimensions
    return {
        "requests": [{**options, "content": {"parts": [{"text": text}]}} for text in work.texts]
    }


def _instances(work: EmbeddingRequest, target: Target) -> dict[str, JsonValue]:
    options: dict[str, JsonValue] = {}
    if work.input_type is not None:
        options["task_type"] = _TASKS[work.input_type]
    parameters: dict[str, JsonValue] = {"autoTruncate": False}
    if (dimensions := sent_dimensions(work, target)) is not None:
        parameters["outputDimensionality"] = dimensions
    return {
        "instances": [{**options, "content": text} for text in work.texts],
        "parameters": parameters,
    }


EMBEDDING_CODEC: Final = BatchCodec(
    split=split_inputs, encode=encode_inputs, decode=decode_vectors, error=error_of_reply
)
