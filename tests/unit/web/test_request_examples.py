"""Every JSON body in the API description has an example that its route accepts.

Keeps C6.
"""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic_core import to_json

from tests.unit.web.test_api_app import api
from tollgate.ingress.base import NO_HEADERS
from tollgate.ingress.format_rows import IngressFormat
from tollgate.ingress.formats import COMPACT, FORMATS
from tollgate.web.request_examples import REQUEST_EXAMPLES


async def test_c6_every_json_body_has_an_example_that_its_schema_permits() -> None:
    document = (await (await api())("GET", "/v1/openapi.json")).json
    bodies: dict[str, Any] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            content = operation.get("requestBody", {"content": {}})["content"]
            if "application/json" in content:
                bodies[f"{method} {path}"] = content["application/json"]
    schemas = {place: body["schema"] for place, body in bodies.items()}
    # One schema for all, because a validator reads the components once.
    validator = Draft202012Validator({"properties": schemas, "components": document["components"]})
    validator.validate({place: body["example"] for place, body in bodies.items()})
    names = {schema.get("$ref", "").rpartition("/")[2] for schema in schemas.values()}
    assert names >= REQUEST_EXAMPLES.keys()
    formats = {f"post {each.path}" for each in FORMATS}
    others = {place for place, body in bodies.items() if body["example"] == FORMATS[0].example}
    # Only requests in a client format have the example of one.
    assert others - formats <= {"post /v1/messages/count_tokens", "post /v1/route/explain"}
    assert len(bodies) > 40


# Requests to compact are parsed with a key of their workspace: tests/unit/web/test_compaction.py.
@pytest.mark.parametrize(
    "row", [row for row in FORMATS if row is not COMPACT], ids=lambda row: row.name
)
async def test_c6_every_format_parses_its_example(row: IngressFormat) -> None:
    call = await api()
    document = (await call("GET", "/v1/openapi.json")).json
    body = document["paths"][row.path]["post"]["requestBody"]["content"]["application/json"]
    parsed = row.make()(call.home.gateway.ids).parse(to_json(body["example"]), NO_HEADERS)
    assert parsed.ignored == ()
    assert parsed.request.model.startswith("test/")


async def test_c6_copied_examples_make_a_key_and_a_webhook() -> None:
    call = await api()
    for path, name in (("/v1/keys", "NewKeyBody"), ("/v1/webhooks", "WebhookBody")):
        reply = await call("POST", path, key=call.management, content=REQUEST_EXAMPLES[name])
        assert reply.status == 201, reply.body
