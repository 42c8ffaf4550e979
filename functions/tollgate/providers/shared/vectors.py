"""Batches, sizes and checks of embeddings for every format, and the fields of Cohere's."""

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import DecodeError, Raw, Struct
from msgspec.json import decode as decode_json

from tollgate.core.json_value import JsonValue
from tollgate.core.request import InputType
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.core.work.vectors import MalformedVector, convert_vector, vector_size
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.refusals import UNREADABLE, malformed_error

# A number has at most 22 characters, a comma, and a blank or the indentation of a line.
_BYTES_PER_NUMBER_MAX: Final = 32
_OTHER_BYTES_MAX: Final = 1024 * 1024
COHERE_INPUTS_MAX: Final = 96
# Since v3, Cohere requires an input type. Most texts are embedded to be stored and searched later.
_INPUT_TYPE_DEFAULT: Final = "search_document"
_INPUT_TYPES: Final[dict[InputType, str]] = {
    "query": "search_query",
    "document": "search_document",
    "classification": "classification",
    "clustering": "clustering",
}
_Body = TypeVar("_Body")


def parse_body(data: bytes, shape: type[_Body], target: Target) -> _Body:
    """Parse a whole answer, except its vectors; raise UpstreamError for any other shape."""
    try:
        return decode_json(data, type=shape)
    except (DecodeError, *UNREADABLE) as invalid:
        raise malformed_error(target.provider, "an answer of unknown form") from invalid


def check_text(piece: bytes, target: Target) -> None:
    """Raise UpstreamError for bytes that are not UTF-8: the caller's parser would fail.

    `parse_body` does not check the fields that it skips.
    """
    try:
        piece.decode()
    except UnicodeDecodeError as invalid:
        raise malformed_error(target.provider, "an answer that is not UTF-8") from invalid


def split_inputs(work: EmbeddingRequest, target: Target) -> Sequence[EmbeddingRequest]:
    """Return the work in batches, each within the endpoint's limit of inputs."""
    return work.split(target.dialect.embeddings.inputs_max)


def sent_dimensions(work: EmbeddingRequest, target: Target) -> int | None:
    """Return the dimensions to send; None if they are the model's default, because some servers
    refuse the field.
    """
    return None if work.dimensions == target.dimensions else work.dimensions


def reply_bytes_max(work: EmbeddingRequest, target: Target) -> int:
    """Return the maximum size of the answer to a batch, in bytes."""
    size = work.dimensions or target.dimensions or 0
    return work.inputs * size * _BYTES_PER_NUMBER_MAX + _OTHER_BYTES_MAX


def checked_vectors(
    vectors: Sequence[bytes], work: EmbeddingRequest, target: Target
) -> tuple[bytes, ...]:
    """Return the vectors in the encoding that the caller wants.

    Raises UpstreamError, so that the attempt fails without a bill, unless each input has one
    vector, all vectors have the expected dimensions, and all vectors that must be converted consist
    of 32-bit floats.
    """
    if len(vectors) != work.inputs:
        raise malformed_error(
            target.provider, f"{len(vectors)} embeddings for {work.inputs} inputs"
        )
    try:
        sizes = set(map(vector_size, vectors))
    except MalformedVector as malformed:
        raise malformed_error(target.provider, "an embedding that is not a vector") from malformed
    dimensions = work.dimensions or target.dimensions
    if sizes != {dimensions}:
        raise malformed_error(
            target.provider, f"embeddings of {min(sizes)} numbers in place of {dimensions}"
        )
    try:
        return tuple(convert_vector(vector, work.encoding) for vector in vectors)
    except MalformedVector as malformed:
        raise malformed_error(target.provider, "numbers that are not 32-bit floats") from malformed


class VectorsByType(Struct, frozen=True):
    """Vectors by number type; the gateway requests only the type float."""

    float: list[Raw]


def cohere_fields(work: EmbeddingRequest, target: Target) -> dict[str, JsonValue]:
    """Return the body of a request, without the model; it makes the server refuse inputs that are
    too long instead of cutting them.
    """
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
