"""The types of the table of client formats: route, code and description of each format."""

from collections.abc import Callable, Mapping

from msgspec import Struct
from pydantic import BaseModel

from tollgate.core.dotted_names import DottedName
from tollgate.core.ids import IdSource
from tollgate.core.request import GenerationRequest
from tollgate.ingress.base import Ingress


class FormatModels(Struct, frozen=True, kw_only=True):
    """The models of a format in the OpenAPI document; requests do not import models from here."""

    request: DottedName[type[BaseModel]]
    reply: DottedName[type[BaseModel]] | None = None
    """The body of a reply that is not streamed; None if such a body is not JSON."""
    error: DottedName[type[BaseModel]] = DottedName(
        "tollgate.ingress.shared.wire.reply_models:ErrorEnvelope"
    )
    form: DottedName[type[BaseModel]] | None = None
    """The fields of a request that is sent as a form; None if the format accepts no forms."""
    media_types: DottedName[Mapping[str, str]] | None = None
    """The media types of replies that are neither JSON nor events, by the requesting option."""
    event: DottedName[type[BaseModel]] | None = None
    """The data of one server-sent event; None if the format does not stream."""
    failure: DottedName[type[BaseModel]] | None = None
    """The data of the event that ends a failed stream; None if the format does not stream."""
    count_request: DottedName[type[BaseModel]] | None = None
    """The request body of the route that counts tokens; None if the format has no such route."""
    count_reply: DottedName[type[BaseModel]] | None = None
    """The reply of the route that counts tokens."""


class TokenCounting(Struct, frozen=True, kw_only=True):
    """The route of a format that counts the tokens of a request."""

    path: str
    parse: DottedName[Callable[[bytes, Mapping[str, str]], GenerationRequest]]
    """Parse a request; raise RequestError with the field at fault."""
    render: Callable[[int], bytes]
    """Return the body of a reply with the count."""
    summary: str
    operation_id: str


class PathAlias(Struct, frozen=True, kw_only=True):
    """A second path of a format, which clients of another service derive from the base URL."""

    path: str
    summary: str
    operation_id: str


class IngressFormat(Struct, frozen=True, kw_only=True):
    """One client format: its route, its code and its description."""

    name: str
    """The format's name in records of generations."""
    path: str
    """The path of the metered route, as `canonical_path` spells it."""
    make: DottedName[Callable[[IdSource], Ingress]]
    models: FormatModels
    tag: str
    summary: str
    description: str
    operation_id: str
    id_header: str | None = None
    """A further header, besides `x-request-id`, in which the format's clients expect the id."""
    alias: PathAlias | None = None
    """A second path that is served exactly as `path`."""
    counting: TokenCounting | None = None
    """The route that counts tokens; None if the format has no such route."""
