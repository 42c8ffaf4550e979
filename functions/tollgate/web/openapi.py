"""The OpenAPI document: FastAPI's document of the API routes, plus the metered routes."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from tollgate.core.files.media_types import FORM
from tollgate.core.json_value import JsonValue
from tollgate.ingress.format_rows import FormatModels, IngressFormat, TokenCounting
from tollgate.ingress.formats import ANTHROPIC_VERSION, CHAT_COMPLETIONS, FORMATS, MESSAGES
from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope
from tollgate.web.access import ACCESS
from tollgate.web.http.paths import SCIM, SCIM_JSON
from tollgate.web.request_examples import REQUEST_EXAMPLES
from tollgate.web.sign_in.session_shapes import (
    ClosedSessionReply,
    IdentityTokenBody,
    NewSessionReply,
    SessionReply,
)

ANY_FORMAT: Final = "x-any-format"
"""Extension that marks an operation whose body is a request in any client format."""
_KEY: Final = "key"
_KEY_HEADER: Final = "key_header"
_BYTES: Final = {"schema": {"type": "string", "format": "binary"}}
_TEXT: Final = {"schema": {"type": "string"}}
_REF: Final = "#/components/schemas/{model}"
# FastAPI documents this status for invalid input, but the gateway replies with its own envelope.
_FOREIGN_STATUS: Final = "422"
_FOREIGN_SCHEMAS: Final = ("HTTPValidationError", "ValidationError")
# RFC 7644, 3.12, plus the error envelope of other routes.
_SCIM_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["schemas", "status", "detail"],
    "properties": {
        "schemas": {"type": "array", "items": {"type": "string"}},
        "status": {"type": "string"},
        "detail": {"type": "string"},
    },
}


def openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document, built from the models that validate requests."""
    document = get_openapi(title=app.title, version=app.version, routes=app.routes)
    schemas: dict[str, Any] = document["components"]["schemas"]
    for name in _FOREIGN_SCHEMAS:
        schemas.pop(name, None)
    schemas |= _format_schemas()
    errors: dict[str, type[BaseModel]] = {}
    requests: list[dict[str, str]] = []
    examples: dict[str, Mapping[str, JsonValue]] = {}
    for each in FORMATS:
        models, error = each.models, each.models.error()
        requests.append(_reference(models.request()))
        document["paths"].setdefault(each.path, {})["post"] = _describe(each, models)
        errors[each.path] = error
        examples[each.path] = each.example
        if alias := each.alias:
            stated = {"summary": alias.summary, "operationId": alias.operation_id}
            document["paths"][alias.path] = {"post": _describe(each, models) | stated}
            errors[alias.path] = error
            examples[alias.path] = each.example
        subpaths = (path for path in document["paths"] if path.startswith(f"{each.path}/"))
        errors |= dict.fromkeys(subpaths, error)
        counting = each.counting
        if counting is not None and models.count_request and models.count_reply:
            described = _describe_count(counting, models.count_request(), models.count_reply())
            document["paths"][counting.path] = {"post": {"tags": [each.tag], **described}}
            errors[counting.path] = error
            examples[counting.path] = each.example
    document["paths"]["/v1/session"] = _describe_sessions()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            envelopes = [errors.get(path, ErrorEnvelope)]
            if any(each["name"] == ANTHROPIC_VERSION for each in operation.get("parameters", ())):
                envelopes.append(errors[MESSAGES.path])
            if path.startswith(SCIM):
                _describe_errors(operation["responses"], _SCIM_ERROR, SCIM_JSON)
            else:
                either = [_reference(each) for each in envelopes]
                schema = either[0] if len(either) == 1 else {"anyOf": either}
                _describe_errors(operation["responses"], schema, "application/json")
            if operation.pop(ANY_FORMAT, False):
                content = {"application/json": {"schema": {"anyOf": requests}}}
                operation["requestBody"] = {"required": True, "content": content}
            _add_example(operation, examples.get(path, CHAT_COMPLETIONS.example))
            access = ACCESS[method.upper(), path]
            # An empty requirement at the end makes the key optional.
            is_optional = access.keyless or not access.roles
            operation["security"] = [{_KEY: []}, {_KEY_HEADER: []}, *([{}] if is_optional else [])]
    document["components"]["securitySchemes"] = {
        _KEY: {"type": "http", "scheme": "bearer"},
        _KEY_HEADER: {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    document["servers"] = [{"url": "/api"}, {"url": "/"}]
    return document


def _add_example(operation: dict[str, Any], default: Mapping[str, Any]) -> None:
    """Add an example to an operation with a JSON body.

    `default` is used for a body without a row in REQUEST_EXAMPLES, such as a client format's.
    """
    body = operation.get("requestBody")
    content = body["content"].get("application/json") if body else None
    if content is not None:
        name = content["schema"].get("$ref", "").rpartition("/")[2]
        content["example"] = REQUEST_EXAMPLES.get(name, default)


def _describe(format_: IngressFormat, models: FormatModels) -> dict[str, Any]:
    whole = {} if models.reply is None else _json(models.reply())
    types = sorted({*models.media_types().values()}) if models.media_types else ()
    other_types = {each: _TEXT if each.startswith("text/") else _BYTES for each in types}
    events = {}
    if models.event is not None and models.failure is not None:
        either = [_reference(models.event()), _reference(models.failure())]
        events = {"text/event-stream": {"schema": {"anyOf": either}}}
    return {
        "tags": [format_.tag],
        "summary": format_.summary,
        "description": format_.description,
        "operationId": format_.operation_id,
        "requestBody": {"required": True, "content": _request_content(models)},
        "responses": {
            "200": {
                "description": "The answer; server-sent events if a stream is requested."
                if events
                else "The result.",
                "content": {**whole, **other_types, **events},
            }
        },
    }


def _request_content(models: FormatModels) -> dict[str, Any]:
    content = _json(models.request())
    return {**content, FORM: {"schema": _reference(models.form())}} if models.form else content


def _describe_count(
    counting: TokenCounting, request: type[BaseModel], reply: type[BaseModel]
) -> dict[str, Any]:
    return {
        "summary": counting.summary,
        "description": "Count the tokens of a request, free of charge. The provider counts them, "
        "or they are estimated: `x-tollgate-token-count` is `exact` or `estimate`.",
        "operationId": counting.operation_id,
        "requestBody": {"required": True, "content": _json(request)},
        "responses": {"200": {"description": "The count.", "content": _json(reply)}},
    }


def _describe_errors(responses: dict[str, Any], schema: dict[str, Any], media_type: str) -> None:
    responses.pop(_FOREIGN_STATUS, None)
    for statuses, origin in (("4XX", "The request's"), ("5XX", "The gateway's or a provider's")):
        responses[statuses] = {
            "description": f"{origin} fault, in the error envelope.",
            "content": {media_type: {"schema": schema}},
        }


def _describe_sessions() -> dict[str, Any]:
    """Return the session routes of the sign-in app, which FastAPI does not document."""
    return {
        "post": {
            "tags": ["sessions"],
            "summary": "Open Session",
            "description": "Open a session for an identity token of the configured issuer. The "
            "session ends an hour after the token was issued.",
            "operationId": "open_session",
            "requestBody": {"required": True, "content": _json(IdentityTokenBody)},
            "responses": {
                "201": {"description": "The session.", "content": _json(NewSessionReply)}
            },
        },
        "get": {
            "tags": ["sessions"],
            "summary": "Show Session",
            "description": "Show the member as whom the caller is signed in.",
            "operationId": "show_session",
            "responses": {"200": {"description": "The member.", "content": _json(SessionReply)}},
        },
        "delete": {
            "tags": ["sessions"],
            "summary": "Close Session",
            "description": "Sign out: the session is refused within five seconds.",
            "operationId": "close_session",
            "responses": {"200": {"description": "The end.", "content": _json(ClosedSessionReply)}},
        },
    }


def _json(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": _reference(model)}}


def _reference(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}


def _format_schemas() -> dict[str, Any]:
    """Return the schemas of all formats, and of the envelope of the API routes, by name.

    The schemas are built in a single call, so that models with the same name get different schema
    names.
    """
    wanted: list[tuple[type[BaseModel], Any]] = [
        (ErrorEnvelope, "serialization"),
        (IdentityTokenBody, "validation"),
        (NewSessionReply, "serialization"),
        (SessionReply, "serialization"),
        (ClosedSessionReply, "serialization"),
    ]
    for each in FORMATS:
        models = each.models
        read_models = (models.request, models.form, models.count_request)
        wanted += [(name(), "validation") for name in read_models if name is not None]
        written_models = (
            models.reply,
            models.event,
            models.failure,
            models.error,
            models.count_reply,
        )
        wanted += [(name(), "serialization") for name in written_models if name is not None]
    _, document = models_json_schema(wanted, ref_template=_REF)
    schemas: dict[str, Any] = document["$defs"]
    names = {name: _short_name(name) for name in schemas}
    references = {_REF.format(model=old): _REF.format(model=new) for old, new in names.items()}
    return {names[name]: _renamed(schema, references) for name, schema in schemas.items()}


def _short_name(name: str) -> str:
    """Return the name of a schema, prefixed by its format if several formats share the name."""
    *packages, own = name.split("__")
    if not packages:
        return name
    format_ = packages[packages.index("ingress") + 1]
    return f"{''.join(word.capitalize() for word in format_.split('_'))}{own}"


def _renamed(value: Any, references: Mapping[str, str]) -> Any:
    """Return a schema with renamed references."""
    match value:
        case dict():
            return {name: _renamed(each, references) for name, each in value.items()}
        case list():
            return [_renamed(each, references) for each in value]
        case str():
            return references.get(value, value)
        case _:
            return value
