"""The fields of Cohere's embeddings, common to Cohere's API and Bedrock.

https://docs.cohere.com/reference/embed and "Cohere Embed v4" of Bedrock's user guide (2026-11-22).
"""

from typing import Final

from msgspec import Raw, Struct

from tollgate.core.json_value import JsonValue
from tollgate.core.request import InputType
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.vectors import sent_dimensions

COHERE_INPUTS_MAX: Final = 96
# Required since v3. Texts are most often embedded to be stored and searched later.
_INPUT_TYPE_DEFAULT: Final = "search_document"
_INPUT_TYPES: Final[dict[InputType, str]] = {
    "query": "search_query",
    "document": "search_document",
    "classification": "classification",
    "clustering": "clustering",
}


class VectorsByType(Struct, frozen=True):
    """Vectors by the type of their numbers; requests name one type, float."""

    float: list[Raw]


def cohere_fields(work: EmbeddingRequest, target: Target) -> dict[str, JsonValue]:
    """Return the body of a request except the model; an input that is too long fails, uncut."""
    use = work.input_type
    fields: dict[str, JsonValue] = {
        "texts": list(work.texts),
        "input_type": _INPUT_TYPES[use] if use else _INPUT_TYPE_DEFAULT,
        "embedding_types": ["float"],
        "truncate": "NONE",
    }
    dimensions = sent_dimensions(work, target)
    return fields if dimensions is None else {**fields, "output_dimension": dimensions}


def raw_vectors(embeddings: VectorsByType | list[Raw]) -> list[bytes]:
    """Return the vectors in order, as raw JSON."""
    listed = embeddings if isinstance(embeddings, list) else embeddings.float
    return [bytes(vector) for vector in listed]
