"""C56: what is sent to an analyzer of Presidio, and its findings as a moderation.

The answers are written after the documentation that the codec names; none is recorded.
"""

import json

import pytest

from tests.unit.ingress.media_samples import PNG, b64
from tollgate.core.content import Image, InlineMedia, Text
from tollgate.core.errors import RequestError, UpstreamError
from tollgate.core.work.moderation import ModerationRequest
from tollgate.providers.ports.base import Frame, Target
from tollgate.providers.ports.formats import WIRE_FORMATS

TARGET = Target(provider="pii", model="acme/pii", upstream_model="de")
CODEC = WIRE_FORMATS["presidio"].batch_codecs["moderation"]
FOUND = {"entity_type": "PERSON", "start": 2, "end": 5, "score": 0.85}


def work(*texts: str) -> ModerationRequest:
    return ModerationRequest(model="acme/pii", subjects=tuple((Text(text=t),) for t in texts))


def test_each_input_is_a_request() -> None:
    sent = [CODEC().encode(each, TARGET) for each in CODEC().split(work("a", "b"), TARGET)]
    assert [each.body for each in sent] == [
        {"text": "a", "language": "de"},
        {"text": "b", "language": "de"},
    ]


def test_findings_are_categories_and_places_in_code_points() -> None:
    result = CODEC().decode(Frame(data=json.dumps([FOUND]).encode()), work("🎈 Zoë"), TARGET)
    (piece,) = map(json.loads, result.pieces)
    assert piece["flagged"] is True
    assert [name for name, is_found in piece["categories"].items() if is_found] == ["person"]
    assert piece["category_scores"]["person"] == 0.85
    assert piece["categories"]["violence"] is False
    assert piece["found"] == [{"finding": "person", "begin": 2, "end": 5}]


def test_places_outside_the_text_and_images_are_refused() -> None:
    with pytest.raises(UpstreamError):
        CODEC().decode(Frame(data=json.dumps([FOUND]).encode()), work("Zoë"), TARGET)
    picture = Image(source=InlineMedia(media_type="image/png", base64=b64(PNG)))
    with pytest.raises(RequestError, match="no images"):
        CODEC().encode(ModerationRequest(model="acme/pii", subjects=((picture,),)), TARGET)
