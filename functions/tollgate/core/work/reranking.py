"""A request to rank documents by their relevance to a query."""

from typing import ClassVar, Final

from typing_extensions import override

from tollgate.core.usage import Units
from tollgate.core.work.base import InputWork
from tollgate.core.work.kinds import WorkKind

# Cohere bills one search for a query with up to 100 documents. A document of more than 500 tokens,
# including the query, counts as several. https://docs.cohere.com/docs/how-does-cohere-pricing-work
# (2026-11-22)
_DOCUMENTS_PER_SEARCH: Final = 100
_TOKENS_PER_DOCUMENT: Final = 500
# The minimum number of tokens left for a document next to the query; a longer query is truncated.
_DOCUMENT_TOKENS_MIN: Final = 50


class RerankRequest(InputWork, frozen=True, kw_only=True):
    """A query and documents; the model reads each document together with the query."""

    kind: ClassVar[WorkKind] = "rerank"

    query: str
    documents: tuple[str, ...]
    results_max: int | None = None
    """The number of documents to return; None for all."""
    shows_documents: bool = False
    """True if the reply includes the text of each document."""

    @property
    @override
    def own_texts(self) -> tuple[str, ...]:
        return (self.query, *self.documents)

    @property
    @override
    def bytes_per_input(self) -> tuple[int, ...]:
        query = len(self.query.encode())
        return tuple(query + len(document.encode()) for document in self.documents)

    @property
    @override
    def units(self) -> Units:
        return Units(search_units=-(-len(self.documents) // _DOCUMENTS_PER_SEARCH))

    @property
    @override
    def units_max(self) -> Units:
        room = max(_DOCUMENT_TOKENS_MIN, _TOKENS_PER_DOCUMENT - len(self.query.encode()))
        pieces = sum(max(1, -(-len(each.encode()) // room)) for each in self.documents)
        return Units(search_units=-(-pieces // _DOCUMENTS_PER_SEARCH))
