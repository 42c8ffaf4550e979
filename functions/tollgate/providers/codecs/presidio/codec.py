"""Encodes one text for `POST /analyze` of Presidio, and decodes what the analyzer found.

OpenAPI description (docs/api-docs/api-docs.yml) and presidio-analyzer/app.py of microsoft/presidio
(seen 2026-11-28). The server counts `start` and `end` in a Python string, so they are code points.
An entity type without a recognizer is an error of the server, as is an unknown language.
"""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.moderation import ModerationRequest
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.shared.moderation_categories import OPENAI_CATEGORIES
from tollgate.providers.shared.openai_errors import parse_openai_reply_error
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.shared.vectors import parse_body

_REPLY_BYTES_MAX: Final = 8 * 1024 * 1024


class _Found(Struct, frozen=True):
    """A part of the text, from `start` to before `end`."""

    entity_type: Annotated[str, Meta(pattern="^[A-Za-z][A-Za-z0-9_]{0,31}$")]
    start: Annotated[int, Meta(ge=0)]
    end: int
    score: Annotated[float, Meta(ge=0, le=1)]


def split_by_input(work: ModerationRequest, target: Target) -> Sequence[ModerationRequest]:
    """Return one request for each input; lists of texts are not in Presidio's description."""
    return tuple(replace(work, subjects=(subject,)) for subject in work.subjects)


def encode(work: ModerationRequest, target: Target) -> WireRequest:
    """Encode one input; raise RequestError for images. The endpoint's name is the language."""
    body: dict[str, JsonValue] = {"text": _text_of(work), "language": target.upstream_model}
    if work.entities:
        body["entities"] = list(work.entities)
    if work.score_min is not None:
        body["score_threshold"] = work.score_min
    return WireRequest(path="/analyze", body=body, reply_bytes_max=_REPLY_BYTES_MAX)


def decode(frame: Frame, work: ModerationRequest, target: Target) -> WorkResult:
    """Decode an answer; raise UpstreamError if a finding lies outside the text."""
    found = parse_body(frame.data, list[_Found], target)
    length = len(_text_of(work))
    if not all(each.start < each.end <= length for each in found):
        raise malformed_error(target.provider, "a finding outside the text")
    scores = dict.fromkeys(OPENAI_CATEGORIES, 0.0)
    names = {each.entity_type.lower() for each in found}
    for each in found:
        name = each.entity_type.lower()
        scores[name] = max(scores.get(name, 0.0), each.score)
    result = {
        "flagged": bool(found),
        "categories": {name: name in names for name in scores},
        "category_scores": scores,
        "category_applied_input_types": {
            name: ["text"] if name in names else [] for name in scores
        },
        "found": [
            {"finding": each.entity_type.lower(), "begin": each.start, "end": each.end}
            for each in found
        ],
    }
    return WorkResult(pieces=(to_json(result),), usage=Usage(output_tokens=0))


def _text_of(work: ModerationRequest) -> str:
    texts = [part.text for part in work.subjects[0] if isinstance(part, Text)]
    if len(texts) != len(work.subjects[0]):
        message = "input may have no images: the analyzer reads only text."
        raise RequestError(ErrorCode.INVALID_REQUEST, message, param="input")
    return "\n".join(texts)


CODEC: Final = BatchCodec(
    split=split_by_input, encode=encode, decode=decode, error=parse_openai_reply_error
)
