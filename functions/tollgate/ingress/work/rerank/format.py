"""The client format for ranking documents, with the fields of Cohere and Jina."""

from collections.abc import Mapping, Sequence

from pydantic_core import from_json, to_json
from typing_extensions import override

from tollgate.core.json_value import JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.work.reranking import RerankRequest
from tollgate.ingress.base import NO_HEADERS, ParsedWork, Routed
from tollgate.ingress.errors import tollgate_metadata
from tollgate.ingress.shared.fields import parse_preferences, printable_names, unknown_fields
from tollgate.ingress.shared.openai_format import WholeReplyFormat, WholeReplyRenderer
from tollgate.ingress.validation import validate_body
from tollgate.ingress.work.rerank.models import RerankBody


class RerankRenderer(WholeReplyRenderer):
    """Renders one reply, which repeats the documents if the caller requests that."""

    @override
    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body, with the most relevant document first."""
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


class Rerank(WholeReplyFormat):
    """The format of POST /v1/rerank."""

    renderer_type = RerankRenderer

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        fields = validate_body(RerankBody, body)
        texts = (
            document if isinstance(document, str) else document.text
            for document in fields.documents
        )
        request = RerankRequest(
            model=fields.model,
            query=fields.query,
            documents=tuple(texts),
            results_max=fields.top_n,
            shows_documents=bool(fields.return_documents),
            user=fields.user,
            metadata=fields.metadata or {},
            preferences=parse_preferences(fields),
        )
        return ParsedWork(request=request, ignored=printable_names(unknown_fields(fields)))
