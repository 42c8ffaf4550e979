"""Log probabilities and citations in the answers of OpenAI-like servers."""

from collections.abc import Iterable, Iterator
from typing import Final

from tollgate.core.events import Citation, LogProbs
from tollgate.providers.codecs.openai_chat.wire import Annotation, Chunk, TokenLogProbs

_URL_CITATION: Final = "url_citation"


def log_probs(lists: TokenLogProbs | None) -> LogProbs | None:
    """Return the log probabilities in OpenAI's form; None if there are none."""
    if lists is None:
        return None
    entries = [*(lists.content or ()), *(lists.refusal or ())]
    if not entries and lists.tokens and lists.token_logprobs:
        # Together's older form has separate lists of tokens and of log probabilities.
        entries = [
            {"token": token, "logprob": value, "bytes": None, "top_logprobs": []}
            for token, value in zip(lists.tokens, lists.token_logprobs, strict=False)
            if value is not None
        ]
    return LogProbs(entries=tuple(entries)) if entries else None


class Citations:
    """Finds the new citations in each chunk, because some servers repeat all citations."""

    def __init__(self) -> None:
        self._known: set[Citation] = set()

    def of_chunk(self, chunk: Chunk) -> Iterator[Citation]:
        """Yield the new citations in Perplexity's list, which is for the whole answer."""
        results = chunk.search_results or ()
        titles = {result.url: result.title for result in results if result.url}
        yield from self._new(
            Citation(url=url, title=titles.get(url)) for url in chunk.citations or titles
        )

    def of_text(self, annotations: Iterable[Annotation] | None) -> Iterator[Citation]:
        """Yield the new citations in OpenAI's annotations, each for a passage of the text."""
        for annotation in annotations or ():
            cited = annotation.url_citation
            if annotation.type == _URL_CITATION and cited is not None:
                citation = Citation(
                    url=cited.url, title=cited.title, start=cited.start_index, end=cited.end_index
                )
                yield from self._new((citation,))

    def _new(self, citations: Iterable[Citation]) -> Iterator[Citation]:
        for citation in citations:
            if citation not in self._known:
                self._known.add(citation)
                yield citation
