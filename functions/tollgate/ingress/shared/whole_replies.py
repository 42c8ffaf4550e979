"""The parts of a client format of OpenAI's whose replies are never streamed."""

from tollgate.core.errors import GatewayError
from tollgate.core.events import StreamEvent
from tollgate.core.ids import IdSource
from tollgate.core.records.generation import GenerationRecord
from tollgate.ingress.base import KEEP_ALIVE_COMMENT, ErrorReply, Routed
from tollgate.ingress.errors import openai_limit_headers, openai_reply


class WholeReplies:
    """The base of such a format: OpenAI's envelope and headers. A reply has no ids of its own."""

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
    """The base of its renderer: events have no frames, and a failure is an error reply."""

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Return no bytes: nothing is sent before the end."""
        return b""

    def close(self, record: GenerationRecord) -> bytes:
        """Return no bytes, as for every event."""
        return b""

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Return no bytes, as for every event."""
        return b""
