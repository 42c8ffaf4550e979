"""C55, C81: what is sent to ApplyGuardrail, and its assessments as a judgement of OpenAI's.

The answers are written after the documentation that the codec names; none is recorded.
"""

import json
from typing import Any

import pytest

from tests.unit.ingress.media_samples import GIF, PNG, b64
from tollgate.core.content import Image, InlineMedia, MediaUrl, Text
from tollgate.core.errors import RequestError, UpstreamError
from tollgate.core.usage import Usage
from tollgate.core.work.base import WorkResult
from tollgate.core.work.moderation import ModerationRequest, Subject
from tollgate.providers.ports.base import Frame, Guardrail, Target, WireRequest
from tollgate.providers.ports.formats import WIRE_FORMATS

ARN = "arn:aws:bedrock:eu-west-1:123456789012:guardrail/gr1"
TARGET = Target(
    provider="aws",
    model="acme/guard",
    upstream_model="support",
    guardrail=Guardrail(id="gr1", version="DRAFT"),
)
TEXT: Subject = (Text(text="a"),)
PICTURE = Image(source=InlineMedia(media_type="image/png", base64=b64(PNG)))
UNITS = {
    "topicPolicyUnits": 2,
    "contentPolicyUnits": 2,
    "wordPolicyUnits": 9,
    "sensitiveInformationPolicyUnits": 0,
    "sensitiveInformationPolicyFreeUnits": 9,
    "contextualGroundingPolicyUnits": 0,
    "contentPolicyImageUnits": 1,
}
COVERED = {
    "textCharacters": {"guarded": 7, "total": 7},
    "images": {"guarded": 1, "total": 1},
}
NOTHING: dict[str, Any] = {
    "usage": UNITS,
    "action": "NONE",
    "outputs": [],
    "assessments": [],
    "guardrailCoverage": COVERED,
}


def sent(*subjects: Subject, to: Target = TARGET) -> list[WireRequest]:
    codec = WIRE_FORMATS["bedrock"].batch_codecs["moderation"]()
    work = ModerationRequest(model="acme/guard", subjects=subjects)
    return [codec.encode(batch, to) for batch in codec.split(work, to)]


def decoded(subject: Subject = TEXT, **answer: Any) -> WorkResult:
    codec = WIRE_FORMATS["bedrock"].batch_codecs["moderation"]()
    frame = Frame(data=json.dumps(NOTHING | answer).encode(), headers={"x-amzn-requestid": "r-1"})
    work = ModerationRequest(model="acme/guard", subjects=(subject,))
    result: WorkResult = codec.decode(frame, work, TARGET)
    return result


def judged(subject: Subject = TEXT, **answer: Any) -> dict[str, Any]:
    (piece,) = decoded(subject, **answer).pieces
    judgement: dict[str, Any] = json.loads(piece)
    return judgement


def found(type_: str, confidence: str, *, detected: bool) -> dict[str, Any]:
    action = "BLOCKED" if detected else "NONE"
    return {
        "type": type_,
        "confidence": confidence,
        "filterStrength": "HIGH",
        "action": action,
        "detected": detected,
    }


def test_each_input_is_a_request_of_the_guardrail() -> None:
    first, second = sent((Text(text="a"), PICTURE), TEXT)
    assert first.path == second.path == "/guardrail/gr1/version/DRAFT/apply"
    assert first.body == {
        "source": "INPUT",
        "outputScope": "FULL",
        "content": [
            {"text": {"text": "a"}},
            {"image": {"format": "png", "source": {"bytes": b64(PNG)}}},
        ],
    }
    assert second.body["content"] == [{"text": {"text": "a"}}]


def test_an_arn_is_one_segment_of_the_path() -> None:
    (wire,) = sent(
        TEXT,
        to=Target(
            provider="aws", model="m", upstream_model="m", guardrail=Guardrail(id=ARN, version="1")
        ),
    )
    quoted = "arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Aguardrail%2Fgr1"
    assert wire.path == f"/guardrail/{quoted}/version/1/apply"


def test_without_a_guardrail_nothing_is_sent() -> None:
    with pytest.raises(UpstreamError):
        sent(TEXT, to=Target(provider="aws", model="m", upstream_model="m"))


@pytest.mark.parametrize(
    "source",
    [InlineMedia(media_type="image/gif", base64=b64(GIF)), MediaUrl(url="https://example.com/a")],
)
def test_a_picture_that_no_guardrail_reads_names_its_field(source: Any) -> None:
    with pytest.raises(RequestError) as refusal:
        sent((Image(source=source),))
    assert refusal.value.param == "input"


def test_filters_become_categories_with_a_score_for_each_step_of_confidence() -> None:
    filters = [
        found("HATE", "LOW", detected=False),
        found("INSULTS", "HIGH", detected=True),
        found("SEXUAL", "NONE", detected=False),
        found("MISCONDUCT", "MEDIUM", detected=True),
        found("PROMPT_ATTACK", "HIGH", detected=True),
    ]
    judgement = judged(
        action="GUARDRAIL_INTERVENED", assessments=[{"contentPolicy": {"filters": filters}}]
    )
    assert judgement["flagged"] is True
    true = {name for name, it in judgement["categories"].items() if it}
    assert true == {"harassment", "illicit", "prompt_attack"}
    scores = judgement["category_scores"]
    assert [scores[it] for it in ("sexual", "hate", "illicit", "harassment")] == [
        0.0,
        0.25,
        0.5,
        0.75,
    ]
    # OpenAI's clients read each of its categories by name; the guardrail has no filter of these.
    assert scores.keys() == judgement["categories"].keys()
    assert (len(scores), scores["self-harm/intent"]) == (14, 0.0)
    applied = judgement["category_applied_input_types"]
    assert (applied["hate"], applied["violence"], applied["self-harm"]) == (["text"], [], [])


def test_what_no_category_stands_for_is_named_beside_them() -> None:
    blocked: dict[str, Any] = {"action": "BLOCKED", "detected": True}
    quiet: dict[str, Any] = {"action": "NONE", "detected": False}
    assessment = {
        "topicPolicy": {
            "topics": [
                {"name": "Investment", "type": "DENY", **blocked},
                {"name": "Medicine", "type": "DENY", **quiet},
            ]
        },
        "wordPolicy": {
            "customWords": [{"match": "acme", **blocked}],
            "managedWordLists": [{"match": "damn", "type": "PROFANITY", **blocked}],
        },
        "sensitiveInformationPolicy": {
            "piiEntities": [
                {"match": "a@b.example", "type": "EMAIL", "action": "ANONYMIZED"},
                {"match": "c@d.example", "type": "EMAIL", "action": "ANONYMIZED"},
            ],
            "regexes": [{"name": "ticket", "match": "T-1", "regex": "T-.", **blocked}],
        },
        "invocationMetrics": {"guardrailProcessingLatency": 7},
        "appliedGuardrailDetails": {"guardrailArn": ARN},
    }
    judgement = judged(action="GUARDRAIL_INTERVENED", assessments=[assessment])
    assert judgement["guardrail"] == {
        "action": "GUARDRAIL_INTERVENED",
        "topics": ["Investment"],
        "words": ["acme", "damn"],
        "sensitive_information": ["EMAIL", "ticket"],
    }
    assert (judgement["flagged"], any(judgement["categories"].values())) == (True, False)
    # Neither the match nor the operator's account is shown.
    assert "b.example" not in json.dumps(judgement)
    assert "123456789012" not in json.dumps(judgement)


def test_a_guardrail_that_only_detects_flags_too() -> None:
    filters = [{**found("VIOLENCE", "HIGH", detected=True), "action": "NONE"}]
    judgement = judged(assessments=[{"contentPolicy": {"filters": filters}}])
    assert (judgement["flagged"], judgement["guardrail"]["action"]) == (True, "NONE")


def test_clean_input_is_not_flagged_and_says_which_types_were_judged() -> None:
    filters = [found("HATE", "NONE", detected=False)]
    judgement = judged(
        (Text(text="a"), PICTURE), assessments=[{"contentPolicy": {"filters": filters}}]
    )
    assert judgement["flagged"] is False
    assert judgement["category_applied_input_types"]["hate"] == ["text", "image"]


def test_units_are_those_of_the_charged_policies_and_are_kept_as_reported() -> None:
    result = decoded()
    assert result.usage == Usage(uncached_input_tokens=0, output_tokens=0, text_units=2, images=1)
    assert result.raw_usage == {
        "contentPolicyUnits": 2,
        "topicPolicyUnits": 2,
        "sensitiveInformationPolicyUnits": 0,
        "contentPolicyImageUnits": 1,
    }
    assert result.upstream_id == "r-1"


@pytest.mark.parametrize(
    "usage", [None, {}, [], {"contentPolicyUnits": -1}, {"topicPolicyUnits": "x"}]
)
def test_units_that_are_not_reported_are_left_to_the_estimate(usage: object) -> None:
    assert decoded(usage=usage).usage.text_units is None


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "PERHAPS"},
        {"action": None},
        {"assessments": None},
        {"assessments": [{"contentPolicy": {}}]},
        {"assessments": [{"contentPolicy": {"filters": [{"type": "HATE", "action": "NONE"}]}}]},
        {"guardrailCoverage": {"textCharacters": {"guarded": 6, "total": 7}}},
        {"guardrailCoverage": {"images": {"guarded": 0, "total": 1}}},
    ],
)
def test_c55_an_answer_that_judges_less_than_the_whole_is_a_failure(answer: Any) -> None:
    with pytest.raises(UpstreamError):
        decoded(**answer)
