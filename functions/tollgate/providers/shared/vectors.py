"""Embeddings in any provider's format: batches, sizes, and checks of vectors."""

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import DecodeError
from msgspec.json import decode as decode_json

from tollgate.core.usage import is_count
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.core.work.vectors import MalformedVector, convert_vector, vector_size
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.refusals import UNREADABLE, malformed_error

# A number has at most 22 characters, plus a comma and a blank or a line's indent.
_BYTES_PER_NUMBER_MAX: Final = 32
_OTHER_BYTES_MAX: Final = 1024 * 1024
_COUNT_DIGITS_MAX: Final = 12


_Body = TypeVar("_Body")


def parse_body(data: bytes, shape: type[_Body], target: Target) -> _Body:
    """Parse a whole answer, with vectors left raw; raise UpstreamError if its shape is wrong."""
    try:
        return decode_json(data, type=shape)
    except (DecodeError, *UNREADABLE) as invalid:
        raise malformed_error(target.provider, "an answer of unknown form") from invalid


def read_count(reported: object) -> int | None:
    """Return a reported number of tokens, None if it is not a count; AWS reports it as text."""
    if isinstance(reported, str) and reported.isascii() and reported.isdigit():
        reported = int(reported[:_COUNT_DIGITS_MAX])
    return reported if isinstance(reported, int) and is_count(reported) else None


def split_inputs(work: EmbeddingRequest, target: Target) -> Sequence[EmbeddingRequest]:
    """Return the work in batches of as many inputs as the endpoint accepts."""
    return work.split(target.dialect.embeddings.inputs_max)


def sent_dimensions(work: EmbeddingRequest, target: Target) -> int | None:
    """Return the dimensions to send, None for the model's default, which some servers refuse."""
    return None if work.dimensions == target.dimensions else work.dimensions


def reply_bytes_max(work: EmbeddingRequest, target: Target) -> int:
    """Return the largest size of the answer to a batch, in bytes."""
    size = work.dimensions or target.dimensions or 0
    return work.inputs * size * _BYTES_PER_NUMBER_MAX + _OTHER_BYTES_MAX


def checked_vectors(
    vectors: Sequence[bytes], work: EmbeddingRequest, target: Target
) -> tuple[bytes, ...]:
    """Return the vectors in the encoding that the caller wants.

    Raises UpstreamError unless each input has one vector, all have the expected dimensions, and
    vectors to convert have 32-bit floats. The attempt then fails and is not billed.
    """
    if len(vectors) != work.inputs:
        raise malformed_error(
            target.provider, f"{len(vectors)} embeddings for {work.inputs} inputs"
        )
    try:
        sizes = set(map(vector_size, vectors))
    except MalformedVector as malformed:
        raise malformed_error(target.provider, "an embedding that is not a vector") from malformed
    due = work.dimensions or target.dimensions
    if sizes != {due}:
        raise malformed_error(
            target.provider, f"embeddings of {min(sizes)} numbers in place of {due}"
        )
    try:
        return tuple(convert_vector(vector, work.encoding) for vector in vectors)
    except MalformedVector as malformed:
        raise malformed_error(target.provider, "numbers that are not 32-bit floats") from malformed
