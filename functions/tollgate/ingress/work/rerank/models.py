"""The request to rank documents and its reply, as clients see them.

https://docs.cohere.com/reference/rerank and https://jina.ai/reranker (2026-11-22).
"""

from typing import Annotated, Final

from pydantic import Field, Tag

from tollgate.ingress.shared.wire.reply_models import Answer, TollgateMetadata
from tollgate.ingress.shared.wire.request_fields import EndUser, RoutingFields
from tollgate.ingress.shared.wire.request_model import String, Wire, by_shape

DOCUMENTS_MAX: Final = 1_000


class DocumentObject(Wire):
    """A document as an object."""

    text: str


_Document = Annotated[
    String | Annotated[DocumentObject, Tag("<object>")],
    by_shape("a string or an object with text"),
]


class RerankBody(EndUser, RoutingFields):
    """The body of POST /v1/rerank. Null means the same as leaving a field out."""

    query: Annotated[str, Field(min_length=1)]
    documents: Annotated[
        list[_Document], Field(min_length=1, max_length=DOCUMENTS_MAX, fail_fast=True)
    ]
    top_n: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="The number of documents to return; all if it is left out."
    )
    return_documents: bool | None = Field(
        default=None, description="Whether each result repeats its document."
    )


class RankedDocument(Answer):
    """A document of the request, repeated in the reply."""

    text: str


class RankedResult(Answer):
    """One document: its index in the request, and its relevance."""

    index: int
    relevance_score: float
    document: RankedDocument | None = None


class BilledUnits(Answer):
    """The search units that were charged; 0 where the model is priced by tokens."""

    search_units: int


class RerankMeta(Answer):
    """The object in which Cohere's clients read search units."""

    billed_units: BilledUnits


class RerankUsage(Answer):
    """The object in which Jina's clients read tokens."""

    total_tokens: int


class RerankReply(Answer):
    """The documents, with the most relevant first."""

    id: str
    model: str
    results: list[RankedResult]
    meta: RerankMeta
    usage: RerankUsage
    tollgate_metadata: TollgateMetadata | None = Field(default=None)
