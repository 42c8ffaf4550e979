"""Models for rerank requests and replies.

https://docs.cohere.com/reference/rerank and https://jina.ai/reranker (2026-11-22).
"""

from typing import Annotated, Final

from pydantic import Field, Tag

from tollgate.ingress.shared.wire.reply_models import Answer, TollgateMetadata
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields
from tollgate.ingress.shared.wire.request_model import String, Wire, by_shape

DOCUMENTS_MAX: Final = 1_000


class DocumentObject(Wire):
    """A document that is sent as an object."""

    text: str


_Document = Annotated[
    String | Annotated[DocumentObject, Tag("<object>")],
    by_shape("a string or an object with the field text"),
]


class RerankBody(EndUser, RoutingFields):
    """The body of POST /v1/rerank; null means the same as omitting a field."""

    query: Annotated[str, Field(min_length=1)]
    documents: Annotated[
        list[_Document], Field(min_length=1, max_length=DOCUMENTS_MAX, fail_fast=True)
    ]
    top_n: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="The maximum number of documents to return; all by default."
    )
    return_documents: bool | None = Field(
        default=None, description="True repeats each document in its result."
    )


class RankedDocument(Answer):
    """A document that the reply repeats."""

    text: str


class RankedResult(Answer):
    """A document's index in the request, and its relevance."""

    index: int
    relevance_score: float
    document: RankedDocument | None = None


class BilledUnits(Answer):
    """The billed search units; 0 if the model is billed by tokens."""

    search_units: int


class RerankMeta(Answer):
    """Search units, where Cohere's clients read them."""

    billed_units: BilledUnits


class RerankUsage(Answer):
    """Tokens, where Jina's clients read them."""

    total_tokens: int


class RerankReply(Answer):
    """The ranked documents, with the most relevant first."""

    id: str
    model: str
    results: list[RankedResult]
    meta: RerankMeta
    usage: RerankUsage
    tollgate_metadata: TollgateMetadata | None = Field(default=None)
