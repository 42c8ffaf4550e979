"""Encodes a batch of inputs, and decodes the list of vectors without parsing the numbers.

https://platform.openai.com/docs/api-reference/embeddings (2026-08-21). For Mistral, Voyage and
Jina, the dialects rename some fields.
"""

from typing import Final
from urllib.parse import quote

from msgspec import Raw, Struct

from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.shared.counts import count_of
from tollgate.providers.shared.openai_errors import parse_openai_reply_error
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.shared.vectors import (
    checked_vectors,
    parse_body,
    reply_bytes_max,
    sent_dimensions,
    split_inputs,
)


class _Item(Struct, frozen=True):
    embedding: Raw
    index: int | None = None


class _Body(Struct, frozen=True):
    data: list[_Item]
    usage: object = None
    model: object = None
    id: object = None


def encode(work: EmbeddingRequest, target: Target) -> WireRequest:
    """Encode one batch. The dimensions are left out if they are the default, because some servers
    refuse them.
    """
    dialect = target.dialect.embeddings
    inputs: list[JsonValue] = [*work.texts, *map(list[JsonValue], work.token_lists)]
    body: dict[str, JsonValue] = {"model": target.upstream_model, "input": inputs}
    adapted: tuple[str, ...] = ()
    if dialect.base64:
        body["encoding_format"] = work.encoding
    if (dimensions := sent_dimensions(work, target)) is not None:
        body[dialect.dimensions_field] = dimensions
    if work.input_type is not None:
        name = dialect.input_types.name_of(work.input_type)
        if name is None:
            adapted = ("input_type",)
        else:
            body[dialect.input_type_field] = name
    if work.user is not None and "user" not in target.dialect.refuses:
        body["user"] = work.user
    return WireRequest(
        path=(dialect.path or "/embeddings").replace(
            "{model}", quote(target.upstream_model, safe="")
        ),
        body=body,
        adapted=adapted,
        reply_bytes_max=reply_bytes_max(work, target),
    )


def decode(frame: Frame, work: EmbeddingRequest, target: Target) -> WorkResult:
    """Decode the answer to one batch, and sort the vectors by index."""
    body = parse_body(frame.data, _Body, target)
    items = body.data
    if any(item.index is not None for item in items):
        items = sorted(items, key=lambda item: -1 if item.index is None else item.index)
        if [item.index for item in items] != list(range(len(items))):
            raise malformed_error(target.provider, "embeddings with other indexes")
    usage = body.usage if isinstance(body.usage, dict) else {}
    return WorkResult(
        pieces=checked_vectors([bytes(item.embedding) for item in items], work, target),
        usage=_usage(usage),
        raw_usage=usage or None,
        upstream_id=body.id if isinstance(body.id, str) else None,
        served_model=body.model if isinstance(body.model, str) else None,
    )


def _usage(reported: dict[str, JsonValue]) -> Usage:
    """Return the tokens of the prompt; Voyage and Jina report only a total."""
    for name in ("prompt_tokens", "total_tokens"):
        count = count_of(reported.get(name))
        if count is not None:
            return Usage(uncached_input_tokens=count, output_tokens=0)
    return Usage()


CODEC: Final = BatchCodec(
    split=split_inputs, encode=encode, decode=decode, error=parse_openai_reply_error
)
