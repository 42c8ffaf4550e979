"""Parses a request to rank documents."""

from tollgate.core.work.reranking import RerankRequest
from tollgate.ingress.base import ParsedWork
from tollgate.ingress.shared.ignored_fields import printable_names
from tollgate.ingress.shared.preferences import parse_preferences, unknown_fields
from tollgate.ingress.validation import validate_body
from tollgate.ingress.work.rerank.wire.rerank_request import RerankBody


def parse_rerank(body: bytes) -> ParsedWork:
    """Parse a request; raise RequestError with the field at fault."""
    asked = validate_body(RerankBody, body)
    request = RerankRequest(
        model=asked.model,
        query=asked.query,
        documents=tuple(each if isinstance(each, str) else each.text for each in asked.documents),
        results_max=asked.top_n,
        shows_documents=bool(asked.return_documents),
        user=asked.user,
        metadata=asked.metadata or {},
        preferences=parse_preferences(asked),
    )
    return ParsedWork(request=request, ignored=printable_names(unknown_fields(asked)))
