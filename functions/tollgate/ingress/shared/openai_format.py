"""The base classes of OpenAI's client formats, and of renderers that do not stream."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from typing import ClassVar

from tollgate.core.errors import GatewayError
from tollgate.core.events import StreamEvent
from tollgate.core.ids import IdSource
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.ingress.base import KEEP_ALIVE_COMMENT, ErrorReply, ParsedWork, Routed, ServedBy
from tollgate.ingress.errors import NO_OTHER_NAMES, FieldNames, openai_limit_headers, openai_reply


class OpenAIFormat:
    """The base class of client formats with OpenAI's headers and error envelope."""

    keep_alive = early_keep_alive = KEEP_ALIVE_COMMENT
    limit_headers = staticmethod(openai_limit_headers)
    field_names: ClassVar[FieldNames] = NO_OTHER_NAMES

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        return openai_reply(error, request_id, routed, self.field_names)


class WholeReplyRenderer(ABC):
    """The base class of renderers that never stream."""

    def __init__(self, call: ParsedWork, served: ServedBy) -> None:
        self._call = call
        self._served = served

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Return no bytes, like `close` and `fail`, because nothing is streamed."""
        return b""

    def close(self, record: GenerationRecord) -> bytes:
        return b""

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        return b""

    @abstractmethod
    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body of the reply."""


class WholeReplyFormat(OpenAIFormat):
    """The base class of client formats that never stream; only reply headers have the cost."""

    renderer_type: ClassVar[type[WholeReplyRenderer]]

    def renderer(
        self, call: ParsedWork, served: ServedBy, *, credits_per_usd: Decimal
    ) -> WholeReplyRenderer:
        return self.renderer_type(call, served)
