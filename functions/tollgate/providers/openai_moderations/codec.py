"""Encodes texts to judge, and passes the judgements on.

https://platform.openai.com/docs/api-reference/moderations (2026-08-21). No tokens are reported.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Raw, Struct
from pydantic import JsonValue

from tollgate.core.moderation import ModerationRequest
from tollgate.core.usage import Usage
from tollgate.core.work import WorkResult
from tollgate.providers.base import Frame, Target, WireRequest
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.shared.vectors import parse_body

_REPLY_BYTES_MAX: Final = 8 * 1024 * 1024


class _Judgement(Struct, frozen=True):
    """The fields that every judgement has; more is passed on unread."""

    flagged: bool
    categories: dict[str, bool]
    category_scores: dict[str, float]


class _Body(Struct, frozen=True):
    results: list[Raw]
    id: object = None
    model: object = None


def as_one_batch(work: ModerationRequest, target: Target) -> Sequence[ModerationRequest]:
    """Return the work as it is: a request has fewer texts than a provider takes."""
    return (work,)


def encode(work: ModerationRequest, target: Target) -> WireRequest:
    """Encode the texts."""
    texts: list[JsonValue] = list(work.texts)
    return WireRequest(
        path="/moderations",
        body={"model": target.upstream_model, "input": texts},
        reply_bytes_max=_REPLY_BYTES_MAX,
    )


def decode(frame: Frame, work: ModerationRequest, target: Target) -> WorkResult:
    """Decode an answer, which must have a judgement for each text."""
    body = parse_body(frame.data, _Body, target)
    pieces = tuple(bytes(result) for result in body.results)
    if len(pieces) != len(work.texts):
        raise malformed_error(target.provider, f"{len(pieces)} judgements")
    for piece in pieces:
        parse_body(piece, _Judgement, target)
        _check_text(piece, target)
    return WorkResult(
        pieces=pieces,
        usage=Usage(output_tokens=0),
        upstream_id=body.id if isinstance(body.id, str) else None,
        served_model=body.model if isinstance(body.model, str) else None,
    )


def _check_text(piece: bytes, target: Target) -> None:
    # What the parser skips it does not decode, and the caller's would fail on it.
    try:
        piece.decode()
    except UnicodeDecodeError as invalid:
        raise malformed_error(target.provider, "a judgement that is not UTF-8") from invalid
