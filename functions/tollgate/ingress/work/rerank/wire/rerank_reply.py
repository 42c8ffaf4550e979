"""The reply with ranked documents, in the fields of Cohere's and of Jina's."""

from pydantic import Field

from tollgate.ingress.shared.wire.reply_models import Answer, TollgateMetadata


class RankedDocument(Answer):
    """A document that is repeated."""

    text: str


class RankedResult(Answer):
    """One document: its place in the request, and its relevance."""

    index: int
    relevance_score: float
    document: RankedDocument | None = None


class BilledUnits(Answer):
    """The units that were charged for, 0 where the model has a price by tokens."""

    search_units: int


class RerankMeta(Answer):
    """Cohere's place of the units."""

    billed_units: BilledUnits


class RerankUsage(Answer):
    """Jina's place of the tokens."""

    total_tokens: int


class RerankReply(Answer):
    """The documents, the most relevant first."""

    id: str
    model: str
    results: list[RankedResult]
    meta: RerankMeta
    usage: RerankUsage
    tollgate_metadata: TollgateMetadata | None = Field(default=None)
