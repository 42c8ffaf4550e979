"""Encodes evidence with its questions, and checks the answers.

https://developers.openai.com/api/reference/resources/decisions, as in openai 3.52.0 (2026-11-27):
every question has one answer, which may be a refusal. Answers are free of charge, and the usage
counts no output.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from msgspec import Meta, Raw, Struct
from msgspec.structs import replace

from tollgate.core.json_value import JsonValue
from tollgate.core.work.base import WorkResult
from tollgate.core.work.decision import DecisionRequest
from tollgate.providers.ports.base import BatchCodec, Frame, Target, WireRequest
from tollgate.providers.shared.openai_errors import parse_openai_reply_error
from tollgate.providers.shared.openai_usage import responses_usage_of
from tollgate.providers.shared.openai_writing import url_of
from tollgate.providers.shared.refusals import malformed_error
from tollgate.providers.shared.vectors import check_text, parse_body

_REPLY_BYTES_MAX: Final = 16 * 1024 * 1024
_Probability = Annotated[float, Meta(ge=0, le=1)]


class _ValueProbability(Struct, frozen=True):
    value: str | bool
    probability: _Probability


class _LevelProbability(Struct, frozen=True):
    value: int
    label: str
    probability: _Probability


class _Predicate(Struct, frozen=True, tag="predicate"):
    probability: _Probability


class _Choice(Struct, frozen=True, tag="choice"):
    choice: str | bool
    confidence: float
    probabilities: list[_ValueProbability]


class _Score(Struct, frozen=True, tag="score"):
    score: float
    confidence: float
    probabilities: list[_LevelProbability]


class _Refusal(Struct, frozen=True, tag="refusal"):
    pass


_Answer = _Predicate | _Choice | _Score | _Refusal


class _CheckedBody(Struct, frozen=True):
    """The required fields of the answers; the caller gets the bytes of each answer unchanged."""

    answers: list[_Answer]


class _Body(Struct, frozen=True):
    answers: list[Raw]
    usage: JsonValue = None
    model: object = None


def whole_work(work: DecisionRequest, target: Target) -> Sequence[DecisionRequest]:
    """Return the work as one batch, because the evidence is charged with every request."""
    return (work,)


def encode(work: DecisionRequest, target: Target) -> WireRequest:
    """Encode a request, with each image's URL or content in its place."""
    urls = iter([url_of(picture.source) for picture in work.pictures])
    body: dict[str, JsonValue] = {
        "model": target.upstream_model,
        "input": _with_pictures(work.evidence, urls),
        "questions": [_with_pictures(question, urls) for question in work.questions],
        **work.options,
    }
    if work.user is not None and "user" not in target.dialect.refuses:
        body["safety_identifier"] = work.user
    return WireRequest(path="/decisions", body=body, reply_bytes_max=_REPLY_BYTES_MAX)


def decode(frame: Frame, work: DecisionRequest, target: Target) -> WorkResult:
    """Decode an answer; raise UpstreamError unless each question has an answer of its type."""
    body = parse_body(frame.data, _Body, target)
    check_text(frame.data, target)
    answers = parse_body(frame.data, _CheckedBody, target).answers
    if len(answers) != len(work.questions):
        raise malformed_error(
            target.provider, f"{len(answers)} answers to {len(work.questions)} questions"
        )
    for answer, question in zip(answers, work.questions, strict=True):
        _check(answer, question, target)
    usage = responses_usage_of(body.usage)
    return WorkResult(
        pieces=tuple(map(bytes, body.answers)),
        usage=replace(usage, output_tokens=0, reasoning_tokens=None),
        raw_usage=body.usage,
        served_model=body.model if isinstance(body.model, str) else None,
    )


def _with_pictures(value: JsonValue, urls: Iterator[str]) -> JsonValue:
    """Return a value with the next URL in place of each null that stands for an image's URL."""
    match value:
        case dict() if value.get("type") == "input_json":
            return value
        case dict() if value.get("type") == "input_image":
            return {**value, "image_url": next(urls)}
        case dict():
            return {name: _with_pictures(inner, urls) for name, inner in value.items()}
        case list():
            return [_with_pictures(inner, urls) for inner in value]
        case _:
            return value


def _check(answer: _Answer, question: dict[str, JsonValue], target: Target) -> None:
    """Raise UpstreamError for an answer whose type differs from its question's, and for an answer
    that is none of the choices.
    """
    if isinstance(answer, _Refusal):
        return
    if answer.__struct_config__.tag != question["type"]:
        raise malformed_error(target.provider, "an answer to another type of question")
    if isinstance(answer, _Choice) and answer.choice not in _values(question["choices"]):
        raise malformed_error(target.provider, "a choice that was not offered")


def _values(choices: JsonValue) -> Iterator[JsonValue]:
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict):
            yield choice["value"]


CODEC: Final = BatchCodec(
    split=whole_work, encode=encode, decode=decode, error=parse_openai_reply_error
)
