"""The OpenAPI document: FastAPI's own of the api routes, and with it the metered ones."""

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tollgate.ingress.chat_completions.wire.request import ChatRequest
from tollgate.ingress.chat_completions.wire.response import (
    ChatCompletion,
    ChatCompletionChunk,
    ErrorEnvelope,
)
from tollgate.web.paths import CHAT_COMPLETIONS, OPENAPI

# What needs no key (contract C3); some of it tells more to who has one.
_OPEN: Final = frozenset({"/v1/models", "/v1/health/live", "/v1/health/ready", OPENAPI})
_KEY: Final = "key"
_REF: Final = "#/components/schemas/{model}"
# FastAPI's words for input it refuses; ours are in the one envelope.
_FOREIGN_STATUS: Final = "422"
_FOREIGN_SCHEMAS: Final = ("HTTPValidationError", "ValidationError")


def openapi(app: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1, built from the models that check requests and that tests hold answers to."""
    document = get_openapi(title=app.title, version=app.version, routes=app.routes)
    schemas: dict[str, Any] = document["components"]["schemas"]
    for name in _FOREIGN_SCHEMAS:
        schemas.pop(name, None)
    schemas |= _schemas(ChatRequest, "validation")
    for model in (ChatCompletion, ChatCompletionChunk, ErrorEnvelope):
        schemas |= _schemas(model, "serialization")
    document["paths"][CHAT_COMPLETIONS] = {"post": _chat_completions()}
    for path, item in document["paths"].items():
        for operation in item.values():
            _tell_errors(operation["responses"])
            # An empty requirement beside it: the key is optional.
            operation["security"] = [{_KEY: []}, *([{}] if path in _OPEN else [])]
    document["components"]["securitySchemes"] = {_KEY: {"type": "http", "scheme": "bearer"}}
    document["servers"] = [{"url": "/api"}, {"url": "/"}]
    return document


def _chat_completions() -> dict[str, Any]:
    return {
        "tags": ["chat"],
        "summary": "Create Chat Completion",
        "description": "An answer of a model, whole or streamed; billed to the key.",
        "operationId": "create_chat_completion",
        "requestBody": {"required": True, "content": _json(ChatRequest)},
        "responses": {
            "200": {
                "description": "The answer; with `stream: true` as server-sent events.",
                "content": {
                    **_json(ChatCompletion),
                    "text/event-stream": {"schema": _reference(ChatCompletionChunk)},
                },
            }
        },
    }


def _tell_errors(responses: dict[str, Any]) -> None:
    responses.pop(_FOREIGN_STATUS, None)
    for statuses, whose in (("4XX", "The request's"), ("5XX", "The gateway's or a provider's")):
        responses[statuses] = {
            "description": f"{whose} fault, told in the one envelope.",
            "content": _json(ErrorEnvelope),
        }


def _json(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": _reference(model)}}


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


def _schemas(model: type[BaseModel], mode: Any) -> dict[str, Any]:
    """A model's schema and those it refers to, by name."""
    _, document = models_json_schema([(model, mode)], ref_template=_REF)
    schemas: dict[str, Any] = document["$defs"]
    return schemas
