"""Parses a request for embeddings."""

from collections.abc import Mapping
from typing import Final

from tollgate.core.request import InputType
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.ingress.base import ParsedWork
from tollgate.ingress.shared.ignored_fields import printable_names
from tollgate.ingress.shared.preferences import parse_preferences, unknown_fields
from tollgate.ingress.validation import validate_body
from tollgate.ingress.work.embeddings.wire.embedding_request import (
    EmbeddingsRequest,
    Input,
    StatedInputType,
)

# Cohere's and NVIDIA's words.
_INPUT_TYPES: Final[Mapping[StatedInputType, InputType]] = {
    "query": "query",
    "document": "document",
    "classification": "classification",
    "clustering": "clustering",
    "search_query": "query",
    "search_document": "document",
    "passage": "document",
}


def parse_embeddings(body: bytes) -> ParsedWork:
    """Parse a request; raise RequestError with the field at fault."""
    asked = validate_body(EmbeddingsRequest, body)
    texts, token_lists = _inputs(asked.input)
    request = EmbeddingRequest(
        model=asked.model,
        texts=texts,
        token_lists=token_lists,
        encoding=asked.encoding_format or "float",
        dimensions=asked.dimensions,
        input_type=None if asked.input_type is None else _INPUT_TYPES[asked.input_type],
        user=asked.user,
        metadata=asked.metadata or {},
        preferences=parse_preferences(asked),
    )
    return ParsedWork(request=request, ignored=printable_names(unknown_fields(asked)))


def _inputs(stated: Input) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Return the inputs that are text, and those that are token ids; one of both is empty."""
    if isinstance(stated, str):
        return (stated,), ()
    texts = tuple(each for each in stated if isinstance(each, str))
    lists = tuple(tuple(each) for each in stated if isinstance(each, list))
    ids = tuple(each for each in stated if isinstance(each, int))
    return texts, (ids,) if ids else lists
