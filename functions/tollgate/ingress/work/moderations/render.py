"""Renders judgements, each as its provider wrote it."""

from collections.abc import Sequence

from pydantic_core import to_json

from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.ingress.base import ParsedWork, Routed, ServedBy
from tollgate.ingress.errors import tollgate_metadata
from tollgate.ingress.shared.whole_replies import WholeReplyRenderer


class ModerationRenderer(WholeReplyRenderer):
    """Renders one reply."""

    def __init__(self, call: ParsedWork, served: ServedBy) -> None:
        self._call = call
        self._served = served

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body, with the judgements in the order of the texts."""
        head = {"id": f"modr-{self._served.generation_id}", "model": self._served.model}
        told = b""
        if self._call.tells_routing:
            told = b',"tollgate_metadata":' + to_json(tollgate_metadata(Routed.of(record)))
        results = b",".join(responses[0].output)
        return b'%b,"results":[%b]%b}' % (to_json(head)[:-1], results, told)
