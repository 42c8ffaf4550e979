"""C55: what is sent to a guardrail validates against the service model that botocore ships."""

from typing import Any

import pytest
from botocore.loaders import Loader  # type: ignore[import-untyped]  # botocore ships no types
from botocore.model import ServiceModel  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]

from tests.unit.providers.test_guardrail_codec import PICTURE, TEXT, sent
from tollgate.core.content import Text
from tollgate.core.work.moderation import Subject


@pytest.mark.parametrize("subject", [TEXT, (PICTURE,), (Text(text="a"), PICTURE, PICTURE)])
def test_c55_a_request_to_a_guardrail_validates(subject: Subject) -> None:
    service = Loader().load_service_model("bedrock-runtime", "service-2")
    operation: Any = ServiceModel(service, "bedrock-runtime").operation_model("ApplyGuardrail")
    (wire,) = sent(subject)
    _, _, guardrail, _, version, end = wire.path.split("/")
    place = {"guardrailIdentifier": guardrail, "guardrailVersion": version}
    report = ParamValidator().validate({**place, **wire.body}, operation.input_shape)
    assert not report.has_errors(), report.generate_report()
    assert {*place, *wire.body} <= set(operation.input_shape.members)
    path = operation.http["requestUri"].format(**place)
    assert wire.path == path
    assert end == "apply"
