"""Citations and log probabilities that Gemini sends next to a text."""

from collections.abc import Iterator

from tollgate.core.events import Citation, LogProbs
from tollgate.core.json_value import JsonValue
from tollgate.providers.codecs.gemini.wire import (
    Candidate,
    Citations,
    Grounding,
    GroundingChunk,
    LogProbsResult,
    Segment,
    TokenLogProb,
)


def citations(candidate: Candidate, text: str) -> Iterator[Citation]:
    """Yield the citations of a text, without sources that support no passage of the text."""
    if candidate.grounding is not None:
        yield from _grounding(candidate.grounding, text)
    if candidate.citations is not None:
        yield from _recited(candidate.citations, text)


def log_probs(result: LogProbsResult) -> LogProbs | None:
    """Return the log probabilities of a chunk in OpenAI's form; None for a chunk without any."""
    entries: list[dict[str, JsonValue]] = []
    for place, chosen in enumerate(result.chosen):
        alternatives = result.top[place].candidates if place < len(result.top) else []
        entries.append(
            {
                **_token(chosen),
                "top_logprobs": [_token(alternative) for alternative in alternatives],
            }
        )
    return LogProbs(entries=tuple(entries)) if entries else None


def _grounding(grounding: Grounding, text: str) -> Iterator[Citation]:
    for support in grounding.supports:
        for number in support.chunks:
            if 0 <= number < len(grounding.chunks):
                yield _citation(_source(grounding.chunks[number]), support.segment, text)


def _source(chunk: GroundingChunk) -> tuple[str | None, str | None]:
    page = chunk.web or chunk.maps or chunk.retrieved
    return (page.uri, page.title) if page else (None, None)


def _recited(recited: Citations, text: str) -> Iterator[Citation]:
    for source in (*recited.citations, *recited.sources):
        yield _citation((source.uri, source.title), source, text)


def _citation(source: tuple[str | None, str | None], segment: Segment, text: str) -> Citation:
    """Return a citation, with Gemini's offsets in UTF-8 bytes converted to characters."""
    raw = text.encode()
    url, title = source
    return Citation(
        url=url,
        title=title,
        start=_characters(raw, segment.start),
        end=None if segment.end is None else _characters(raw, segment.end),
    )


def _characters(raw: bytes, offset: int) -> int:
    return len(raw[: max(0, offset)].decode(errors="ignore"))


def _token(token: TokenLogProb) -> dict[str, JsonValue]:
    return {
        "token": token.token,
        "logprob": token.log_probability,
        "bytes": [*token.token.encode()],
    }
