"""Models of embeddings in the lists of models.

Keeps C3, C81.
"""

from jsonschema import Draft202012Validator

from tests.unit.routing.catalogs import endpoint, model
from tests.unit.web.test_api_app import api
from tollgate.web.models.model_shapes import EndpointsReply, ModelObject

VECTORS = {
    "name": "Vectors",
    "kind": "embedding",
    "context": 8_192,
    "vectors": {"dimensions": 256},
    "endpoints": (endpoint("far", "V"),),
}
MODELS = {"acme/large": model(endpoint("near", "L")), "acme/vec": VECTORS}


async def test_c3_c6_models_of_each_kind_have_the_fields_that_openapi_requires() -> None:
    call = await api(models=MODELS, aliases={}, routes={})
    described = Draft202012Validator(ModelObject.model_json_schema(mode="serialization"))
    for shown in (await call("GET", "/v1/models")).json["data"]:
        described.validate(shown)
    described = Draft202012Validator(EndpointsReply.model_json_schema(mode="serialization"))
    described.validate((await call("GET", "/v1/models/acme/vec/endpoints")).json)


async def test_c3_c81_a_model_of_embeddings_says_what_it_makes() -> None:
    call = await api(models=MODELS, aliases={}, routes={})
    shown = (await call("GET", "/v1/models/acme/vec")).json
    assert shown["architecture"] == {
        "modality": "text->embeddings",
        "input_modalities": ["text"],
        "output_modalities": ["embeddings"],
    }
    assert (shown["dimensions"], shown["context_length"]) == (256, 8_192)
    assert "max_completion_tokens" not in shown
    for asked, names in (
        ("embeddings", ["acme/vec"]),
        ("text", ["acme/large"]),
        ("text,embeddings", ["acme/large", "acme/vec"]),
        ("all", ["acme/large", "acme/vec"]),
        ("image", []),
    ):
        reply = await call("GET", f"/v1/models?output_modalities={asked}")
        assert [each["id"] for each in reply.json["data"]] == names
    for asked, names in (
        ("embeddings", ["acme/vec"]),
        ("text", ["acme/large", "acme/vec"]),
        ("text,image", ["acme/large", "acme/vec"]),
        ("audio", []),
    ):
        reply = await call("GET", f"/v1/models?modality={asked}")
        assert [each["id"] for each in reply.json["data"]] == names
    for param in ("modality", "output_modalities"):
        refused = await call("GET", f"/v1/models?{param}=text,nonsense")
        assert (refused.status, refused.error["param"]) == (400, param)
        assert "nonsense" in refused.error["message"]
    anthropic = {"anthropic-version": "2023-06-01"}
    listed = (await call("GET", "/v1/models", headers=anthropic)).json["data"]
    assert [each["id"] for each in listed] == ["acme/large"]
    endpoints = (await call("GET", "/v1/models/acme/vec/endpoints")).json["data"]["endpoints"]
    assert endpoints[0]["supported_parameters"] == ["dimensions", "encoding_format", "input_type"]
