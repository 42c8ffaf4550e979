"""Encodes texts and images to moderate, and checks the results.

https://platform.openai.com/docs/api-reference/moderations (2026-11-22): a list of texts gets one
result for each text, a list of parts gets one result for all parts. Tokens are not reported.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from tollgate.core.content import Image, Text
from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.moderation import ModerationRequest, Subject
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.shared.openai_errors import parse_openai_reply_error
from tollgate.providers.shared.openai_writing import url_of
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.shared.vectors import check_text, parse_body

_REPLY_BYTES_MAX: Final = 8 * 1024 * 1024


class _Judgement(Struct, frozen=True):
    """The required fields of a result; the caller gets the result's bytes unchanged."""

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]


class _Body(Struct, frozen=True):
    results: list[Raw]
    id: object = None
    model: object = None


def split_by_form(work: ModerationRequest, target: Target) -> Sequence[ModerationRequest]:
    """Return one batch if every input is a single text, otherwise one batch per input."""
    if all(map(_is_one_text, work.subjects)):
        return (work,)
    return tuple(replace(work, subjects=(subject,)) for subject in work.subjects)


def encode(work: ModerationRequest, target: Target) -> WireRequest:
    """Encode a list of strings if every input is a single text, otherwise the parts of
    one input.
    """
    texts: list[JsonValue] = list(work.own_texts)
    one_text_each = all(map(_is_one_text, work.subjects))
    return WireRequest(
        path="/moderations",
        body={
            "model": target.upstream_model,
            "input": texts if one_text_each else [_part(part) for part in work.subjects[0]],
        },
        reply_bytes_max=_REPLY_BYTES_MAX,
    )


def decode(frame: Frame, work: ModerationRequest, target: Target) -> WorkResult:
    """Decode an answer; raise UpstreamError unless it has one result for each input."""
    body = parse_body(frame.data, _Body, target)
    pieces = tuple(bytes(result) for result in body.results)
    if len(pieces) != len(work.subjects):
        raise malformed_error(target.provider, f"{len(pieces)} judgements")
    for piece in pieces:
        parse_body(piece, _Judgement, target)
        check_text(piece, target)
    return WorkResult(
        pieces=pieces,
        usage=Usage(output_tokens=0),
        upstream_id=body.id if isinstance(body.id, str) else None,
        served_model=body.model if isinstance(body.model, str) else None,
    )


def _is_one_text(subject: Subject) -> bool:
    return len(subject) == 1 and isinstance(subject[0], Text)


def _part(part: Text | Image) -> JsonValue:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": url_of(part.source)}}


CODEC: Final = BatchCodec(
    split=split_by_form, encode=encode, decode=decode, error=parse_openai_reply_error
)
