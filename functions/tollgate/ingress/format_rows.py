"""The row of a client format in `ingress/formats.py`."""

from collections.abc import Callable, Mapping

from msgspec import Struct
from pydantic import BaseModel

from tollgate.core.dotted_names import DottedName
from tollgate.core.ids import IdSource
from tollgate.core.json_value import JsonValue
from tollgate.core.request import GenerationRequest
from tollgate.ingress.base import Ingress, ParsedCall


class FormatModels(Struct, frozen=True, kw_only=True):
    """The models of a format for the OpenAPI document; serving a request does not import them."""

    request: DottedName[type[BaseModel]]
    reply: DottedName[type[BaseModel]] | None = None
    """The body of a non-streamed reply; None if that body is not JSON."""
    error: DottedName[type[BaseModel]] = DottedName(
        "tollgate.ingress.shared.wire.reply_models:ErrorEnvelope"
    )
    form: DottedName[type[BaseModel]] | None = None
    """The fields of a request sent as a form; None if the format does not accept forms."""
    media_types: DottedName[Mapping[str, str]] | None = None
    """The media types of replies that are neither JSON nor events, keyed by the format that a
    request asks for.
    """
    event: DottedName[type[BaseModel]] | None = None
    """The JSON data of a server-sent event; None if the format does not stream."""
    failure: DottedName[type[BaseModel]] | None = None
    """The JSON data of the event that ends a failed stream; None if the format does not stream."""
    count_request: DottedName[type[BaseModel]] | None = None
    """The request body of the token-counting route; None if the format has no such route."""
    count_reply: DottedName[type[BaseModel]] | None = None
    """The reply of the token-counting route."""


class TokenCounting(Struct, frozen=True, kw_only=True):
    """A route that counts the input tokens of a request."""

    path: str
    parse: DottedName[Callable[[bytes, Mapping[str, str]], GenerationRequest]]
    """The function that parses a request; it raises RequestError with the field at fault."""
    render: Callable[[int], bytes]
    """The function that returns the reply body for a token count."""
    summary: str
    operation_id: str


class PathAlias(Struct, frozen=True, kw_only=True):
    """A second path of a format, used by another vendor's clients."""

    path: str
    summary: str
    operation_id: str


class IngressFormat(Struct, frozen=True, kw_only=True):
    """One client format: its route, code and API description."""

    name: str
    """The format's name in generation records."""
    path: str
    """The path of the metered route, in the form that `canonical_path` returns."""
    make: DottedName[Callable[[IdSource], Ingress]]
    models: FormatModels
    tag: str
    summary: str
    description: str
    operation_id: str
    example: Mapping[str, JsonValue]
    """An example request, for a model that `make run` serves."""
    id_header: str | None = None
    """The name of a header that repeats `x-request-id` for clients of this format."""
    alias: PathAlias | None = None
    """A second path with the same behavior as `path`."""
    counting: TokenCounting | None = None
    """The token-counting route; None if the format has no such route."""
    parse_read: DottedName[Callable[..., ParsedCall]] | None = None
    """The function that parses a decoded request together with the stored turns that it names and
    the workspace's seal. None if requests of the format need neither.
    """
