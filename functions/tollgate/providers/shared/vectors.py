"""Embeddings, whatever the provider's format: batches, sizes, and checks of vectors."""

from collections.abc import Sequence
from typing import Final

from tollgate.core.embedding import EmbeddingRequest
from tollgate.core.vectors import MalformedVector, vector_size
from tollgate.providers.base import Target
from tollgate.providers.shared.refusals import malformed_error

# Numbers are written with 22 characters at most, a comma and a blank or a line's indent.
_BYTES_PER_NUMBER_MAX: Final = 32
_OTHER_BYTES_MAX: Final = 1024 * 1024


def split_inputs(work: EmbeddingRequest, target: Target) -> Sequence[EmbeddingRequest]:
    """Return the work in batches of as many inputs as the endpoint takes."""
    return work.split(target.dialect.embeddings.inputs_max)


def sent_dimensions(work: EmbeddingRequest, target: Target) -> int | None:
    """Return the size of vectors to send, None for the model's own, which some refuse to hear."""
    return None if work.dimensions == target.dimensions else work.dimensions


def reply_bytes_max(work: EmbeddingRequest, target: Target) -> int:
    """Return the bytes that the answer to a batch can have."""
    size = work.dimensions or target.dimensions or 0
    return work.inputs * size * _BYTES_PER_NUMBER_MAX + _OTHER_BYTES_MAX


def checked_vectors(
    vectors: Sequence[bytes], work: EmbeddingRequest, target: Target
) -> tuple[bytes, ...]:
    """Return the vectors; UpstreamError unless each input has one, all of the size that is due."""
    if len(vectors) != work.inputs:
        raise malformed_error(target.provider, f"{len(vectors)} embeddings of {work.inputs} inputs")
    try:
        sizes = set(map(vector_size, vectors))
    except MalformedVector as malformed:
        raise malformed_error(target.provider, "an embedding that is no vector") from malformed
    due = work.dimensions or target.dimensions
    if sizes != {due}:
        raise malformed_error(
            target.provider, f"embeddings of {min(sizes)} numbers in place of {due}"
        )
    return tuple(vectors)
