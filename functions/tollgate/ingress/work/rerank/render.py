"""Renders ranked documents."""

from collections.abc import Sequence

from pydantic_core import from_json, to_json

from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.work.reranking import RerankRequest
from tollgate.ingress.base import ParsedWork, Routed, ServedBy
from tollgate.ingress.errors import tollgate_metadata
from tollgate.ingress.shared.whole_replies import WholeReplyRenderer


class RerankRenderer(WholeReplyRenderer):
    """Renders one reply; documents are repeated from the request."""

    def __init__(self, call: ParsedWork, served: ServedBy) -> None:
        self._call = call
        self._served = served

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body, the most relevant document first."""
        reply: dict[str, JsonValue] = {
            "id": f"gen-{self._served.generation_id}",
            "model": self._served.model,
            "results": [self._result(piece) for piece in responses[0].output],
            "meta": {"billed_units": {"search_units": record.usage.search_units or 0}},
            "usage": {"total_tokens": record.usage.input_tokens},
        }
        if self._call.tells_routing:
            reply["tollgate_metadata"] = tollgate_metadata(Routed.of(record))
        return to_json(reply)

    def _result(self, piece: bytes) -> JsonValue:
        result = from_json(piece)
        request = self._call.request
        if isinstance(request, RerankRequest) and request.shows_documents:
            result["document"] = {"text": request.documents[result["index"]]}
        return dict(result)
