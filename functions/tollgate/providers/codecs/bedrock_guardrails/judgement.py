"""Turns the assessments of a guardrail into an OpenAI moderation result.

Content filters become categories. Topics, words and sensitive information have no category at
OpenAI, so the field `guardrail` lists them. Clients read every category by name, so all of
OpenAI's categories are present; a category without a filter applies to no input type.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, Literal

from msgspec import Struct
from pydantic_core import to_json

from tollgate.core.content import Image, Text
from tollgate.providers.shared.moderation_categories import OPENAI_CATEGORIES

# The category for each filter: Bedrock user guide, "Content filters" (2026-11-22). Any other
# filter, such as PROMPT_ATTACK, becomes a category with the filter's own name in lower case.
_CATEGORY_OF_FILTER: Final[Mapping[str, str]] = {
    "HATE": "hate",
    "INSULTS": "harassment",
    "MISCONDUCT": "illicit",
    "SEXUAL": "sexual",
    "VIOLENCE": "violence",
}
# The score for each of the four levels of confidence that guardrails report.
_SCORES: Final[Mapping[str, float]] = {"NONE": 0.0, "LOW": 0.25, "MEDIUM": 0.5, "HIGH": 0.75}


class _Finding(Struct, frozen=True):
    """An item that a policy looks for, and whether the policy found the item."""

    action: str
    detected: bool | None = None
    name: str | None = None
    type: str | None = None
    match: str | None = None

    @property
    def is_found(self) -> bool:
        return bool(self.detected) or self.action != "NONE"


class _Filter(_Finding, frozen=True, kw_only=True):
    type: str
    confidence: Literal["NONE", "LOW", "MEDIUM", "HIGH"]


class _Content(Struct, frozen=True):
    filters: list[_Filter]


class _Topics(Struct, frozen=True):
    topics: list[_Finding]


class _Words(Struct, frozen=True, rename="camel"):
    custom_words: list[_Finding]
    managed_word_lists: list[_Finding]


class _Sensitive(Struct, frozen=True, rename="camel"):
    pii_entities: list[_Finding]
    regexes: list[_Finding]


class _Assessment(Struct, frozen=True, rename="camel"):
    content_policy: _Content | None = None
    topic_policy: _Topics | None = None
    word_policy: _Words | None = None
    sensitive_information_policy: _Sensitive | None = None


class GuardedPart(Struct, frozen=True):
    """The judged amount and the total amount of one input type."""

    guarded: int = 0
    total: int = 0


class GuardedParts(Struct, frozen=True, rename="camel"):
    """The judged part of each input type."""

    text_characters: GuardedPart = GuardedPart()
    images: GuardedPart = GuardedPart()


class AssessedInput(Struct, frozen=True, rename="camel"):
    """An answer of ApplyGuardrail."""

    action: Literal["NONE", "GUARDRAIL_INTERVENED"]
    assessments: list[_Assessment]
    usage: object = None
    guardrail_coverage: GuardedParts = GuardedParts()


def write_judgement(body: AssessedInput, subject: Sequence[Text | Image]) -> bytes:
    """Return the moderation result of one input as JSON."""
    types = [
        name
        for name, shape in (("text", Text), ("image", Image))
        if any(isinstance(part, shape) for part in subject)
    ]
    filters = list(_filters(body.assessments))
    applied = {_category(content_filter) for content_filter in filters}
    found_categories = {
        _category(content_filter) for content_filter in filters if content_filter.is_found
    }
    scores = dict.fromkeys(OPENAI_CATEGORIES, 0.0)
    for content_filter in filters:
        name = _category(content_filter)
        scores[name] = max(scores.get(name, 0.0), _SCORES[content_filter.confidence])
    other_findings = _other_findings(body.assessments)
    return to_json(
        {
            "flagged": body.action != "NONE"
            or bool(found_categories)
            or any(other_findings.values()),
            "categories": {name: name in found_categories for name in scores},
            "category_scores": scores,
            "category_applied_input_types": {
                name: types if name in applied else [] for name in scores
            },
            "guardrail": {"action": body.action, **other_findings},
        }
    )


def _category(content_filter: _Filter) -> str:
    return _CATEGORY_OF_FILTER.get(content_filter.type, content_filter.type.lower())


def _filters(assessments: Iterable[_Assessment]) -> Iterator[_Filter]:
    for assessment in assessments:
        if assessment.content_policy is not None:
            yield from assessment.content_policy.filters


def _other_findings(assessments: Sequence[_Assessment]) -> dict[str, list[str]]:
    """Return the distinct findings of policies without an OpenAI category.

    Sensitive information is reported by type or name, because the match would reveal it.
    """
    topics = [
        assessment.topic_policy.topics for assessment in assessments if assessment.topic_policy
    ]
    words = [
        chain(policy.custom_words, policy.managed_word_lists)
        for policy in (assessment.word_policy for assessment in assessments)
        if policy
    ]
    sensitive = [
        chain(policy.pii_entities, policy.regexes)
        for policy in (assessment.sensitive_information_policy for assessment in assessments)
        if policy
    ]
    return {
        "topics": _names(topics, "name"),
        "words": _names(words, "match"),
        "sensitive_information": _names(sensitive, "type", "name"),
    }


def _names(lists: Iterable[Iterable[_Finding]], *fields: str) -> list[str]:
    findings = (finding for finding in chain.from_iterable(lists) if finding.is_found)
    names = (
        next(filter(None, (getattr(finding, field) for field in fields)), None)
        for finding in findings
    )
    return list(dict.fromkeys(name or "unnamed" for name in names))
