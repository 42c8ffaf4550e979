"""Encodes one input for ApplyGuardrail, and decodes its assessments as an OpenAI moderation.

Amazon Bedrock API reference, "ApplyGuardrail", "GuardrailAssessment" and "GuardrailUsage"; user
guide, "Use the ApplyGuardrail API in your application" (2026-11-22).
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from tollgate.core.content import Image, InlineMedia, Text
from tollgate.core.errors import ErrorCode, RequestError, UpstreamError
from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.moderation import ModerationRequest
from tollgate.providers.codecs.bedrock_guardrails.judgement import (
    AssessedInput,
    GuardedPart,
    write_judgement,
)
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.shared.bedrock import error_of_bedrock_reply
from tollgate.providers.shared.counts import count_of
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.shared.vectors import parse_body

_REPLY_BYTES_MAX: Final = 8 * 1024 * 1024
_PICTURE_FORMATS: Final = {"image/jpeg": "jpeg", "image/png": "png"}
# The policies that are charged per text unit. Custom words and regular expressions are free;
# grounding needs sources, which no request has. https://aws.amazon.com/bedrock/pricing (2026-11-22)
_CHARGED: Final = ("contentPolicyUnits", "topicPolicyUnits", "sensitiveInformationPolicyUnits")
_PICTURES: Final = "contentPolicyImageUnits"


def split_by_input(work: ModerationRequest, target: Target) -> Sequence[ModerationRequest]:
    """Return one request for each input, because an answer does not say which input it is about."""
    return tuple(replace(work, subjects=(subject,)) for subject in work.subjects)


def encode(work: ModerationRequest, target: Target) -> WireRequest:
    """Encode one input; raise RequestError for an image format that guardrails cannot read."""
    guardrail = target.guardrail
    if guardrail is None:
        raise UpstreamError(
            ErrorCode.PROVIDER_UNAVAILABLE, f"The endpoint at {target.provider} has no guardrail."
        )
    content: list[JsonValue] = [_block(part) for part in work.subjects[0]]
    # With `FULL` the answer lists every filter that was applied, including filters without a
    # finding.
    body: dict[str, JsonValue] = {"source": "INPUT", "outputScope": "FULL", "content": content}
    path = f"/guardrail/{quote(guardrail.id, safe='')}/version/{guardrail.version}/apply"
    return WireRequest(path=path, body=body, reply_bytes_max=_REPLY_BYTES_MAX)


def decode(frame: Frame, work: ModerationRequest, target: Target) -> WorkResult:
    """Decode an answer; raise UpstreamError if the guardrail judged only a part of the input."""
    body = parse_body(frame.data, AssessedInput, target)
    covered = body.guardrail_coverage
    if not (_is_whole(covered.text_characters) and _is_whole(covered.images)):
        raise malformed_error(target.provider, "a judgement of only a part of the input")
    usage, raw = _usage(body.usage)
    return WorkResult(
        pieces=(write_judgement(body, work.subjects[0]),),
        usage=usage,
        raw_usage=raw,
        upstream_id=frame.headers.get("x-amzn-requestid"),
    )


def _block(part: Text | Image) -> JsonValue:
    if isinstance(part, Text):
        return {"text": {"text": part.text}}
    source = part.source
    format_ = _PICTURE_FORMATS.get(source.media_type) if isinstance(source, InlineMedia) else None
    if not isinstance(source, InlineMedia) or format_ is None:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "input may have only PNG and JPEG images: the guardrail reads no other types.",
            param="input",
        )
    return {"image": {"format": format_, "source": {"bytes": source.base64}}}


def _is_whole(coverage: GuardedPart) -> bool:
    return coverage.guarded == coverage.total


def _usage(reported: object) -> tuple[Usage, JsonValue]:
    """Return the usage: each policy reads the whole text, so the largest count is charged.

    If no policy reports text units, they are None, and the gateway estimates them.
    """
    units_by_name = reported if isinstance(reported, dict) else {}
    counts = {name: count_of(units_by_name.get(name)) for name in (*_CHARGED, _PICTURES)}
    raw: dict[str, JsonValue] = {name: count for name, count in counts.items() if count is not None}
    units = [counts[name] or 0 for name in _CHARGED if counts[name] is not None]
    return (
        Usage(
            uncached_input_tokens=0,
            output_tokens=0,
            text_units=max(units) if units else None,
            images=counts[_PICTURES],
        ),
        raw or None,
    )


CODEC: Final = BatchCodec(
    split=split_by_input, encode=encode, decode=decode, error=error_of_bedrock_reply
)
