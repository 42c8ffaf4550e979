"""The row of a client format: its route, its code and its description."""

from collections.abc import Callable, Mapping

from msgspec import Struct
from pydantic import BaseModel

from tollgate.core.dotted_names import DottedName
from tollgate.core.ids import IdSource
from tollgate.core.request import GenerationRequest
from tollgate.ingress.base import Ingress


class FormatModels(Struct, frozen=True, kw_only=True):
    """The models that the OpenAPI document shows of a format; no request imports them by this."""

    request: DottedName[type[BaseModel]]
    reply: DottedName[type[BaseModel]] | None = None
    """The body of a reply that is not streamed; None if it is no JSON."""
    error: DottedName[type[BaseModel]] = DottedName(
        "tollgate.ingress.shared.wire.reply_models:ErrorEnvelope"
    )
    form: DottedName[type[BaseModel]] | None = None
    """The fields of a request that is a form; None if none may be one."""
    media_types: DottedName[Mapping[str, str]] | None = None
    """The types of replies that are neither JSON nor events, by the option that requests them."""
    event: DottedName[type[BaseModel]] | None = None
    """The data of one server-sent event; None if no reply is streamed."""
    failure: DottedName[type[BaseModel]] | None = None
    """The data of the event that ends a broken stream."""
    count_request: DottedName[type[BaseModel]] | None = None
    """The body of the route that counts tokens, None without one."""
    count_reply: DottedName[type[BaseModel]] | None = None


class TokenCounting(Struct, frozen=True, kw_only=True):
    """The route of a format that counts the tokens of a request."""

    path: str
    parse: DottedName[Callable[[bytes, Mapping[str, str]], GenerationRequest]]
    """Parse a request; RequestError with the field at fault."""
    render: Callable[[int], bytes]
    """Return the body of a reply with the count."""
    summary: str
    operation_id: str


class PathAlias(Struct, frozen=True, kw_only=True):
    """Another path of a format, which clients of another service build by themselves."""

    path: str
    summary: str
    operation_id: str


class IngressFormat(Struct, frozen=True, kw_only=True):
    """One client format: its route, its code and its description."""

    name: str
    """As records of generations write it."""
    path: str
    """Of the metered route, as `canonical_path` spells it."""
    make: DottedName[Callable[[IdSource], Ingress]]
    models: FormatModels
    tag: str
    summary: str
    description: str
    operation_id: str
    id_header: str | None = None
    """The header, beside `x-request-id`, in which clients of the format look for the id."""
    alias: PathAlias | None = None
    """Served as `path` is, to the last byte."""
    counting: TokenCounting | None = None
    """None for a format whose clients know no count."""
