"""OpenAI's generation and editing of pictures as client formats."""

from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar

from typing_extensions import override

from tollgate.core.errors import GatewayError
from tollgate.ingress.base import NO_HEADERS, ErrorReply, ParsedWork, Routed, ServedBy
from tollgate.ingress.errors import FieldNames, openai_reply
from tollgate.ingress.shared.whole_replies import WholeReplies
from tollgate.ingress.work.images.parse import parse_edit, parse_generation
from tollgate.ingress.work.images.render import ImageRenderer


class ImageGenerations(WholeReplies):
    """The format of POST /v1/images/generations; its replies have no ids."""

    _names: ClassVar[FieldNames] = {"messages": "prompt"}

    @override
    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """Render an error in OpenAI's envelope, by the names of this format's fields."""
        return openai_reply(error, request_id, routed, self._names)

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a request; raise RequestError with the field at fault. No header is read."""
        return parse_generation(body)

    def renderer(
        self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal
    ) -> ImageRenderer:
        """Return a new renderer for one reply."""
        return ImageRenderer(
            call, served, events="image_generation", credits_per_usd=credits_per_usd
        )


class ImageEdits(ImageGenerations):
    """The format of POST /v1/images/edits."""

    _names: ClassVar[FieldNames] = {"messages": "images"}

    @override
    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse JSON or a form; raise RequestError with the field at fault."""
        return parse_edit(body, headers.get("content-type", ""))

    @override
    def renderer(
        self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal
    ) -> ImageRenderer:
        """Return a new renderer for one reply."""
        return ImageRenderer(call, served, events="image_edit", credits_per_usd=credits_per_usd)
