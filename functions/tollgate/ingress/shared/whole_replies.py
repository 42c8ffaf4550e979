"""The base classes of OpenAI's client formats whose replies are never streamed."""

from tollgate.core.errors import GatewayError
from tollgate.core.events import StreamEvent
from tollgate.core.ids import IdSource
from tollgate.core.records.generation import GenerationRecord
from tollgate.ingress.base import KEEP_ALIVE_COMMENT, ErrorReply, Routed
from tollgate.ingress.errors import openai_limit_headers, openai_reply


class WholeReplies:
    """The base of such a format, with OpenAI's envelope and headers; replies need no ids."""

    def __init__(self, ids: IdSource) -> None:
        del ids

    keep_alive = early_keep_alive = KEEP_ALIVE_COMMENT
    limit_headers = staticmethod(openai_limit_headers)

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """Render an error in OpenAI's envelope."""
        return openai_reply(error, request_id, routed)


class WholeReplyRenderer:
    """The base of the format's renderer: events have no frames, and failures are error replies."""

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Return no bytes, because nothing is sent before the end."""
        return b""

    def close(self, record: GenerationRecord) -> bytes:
        """Return no bytes, as for every event."""
        return b""

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Return no bytes, as for every event."""
        return b""
