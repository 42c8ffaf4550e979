"""Reads the log probabilities and the citations of a text."""

from tollgate.core.events import Citation, LogProbs
from tollgate.core.json_value import JsonValue
from tollgate.providers.codecs.openai_responses.wire import Annotation


def log_probs(raw_entries: list[dict[str, JsonValue]] | None) -> LogProbs | None:
    """Return the log probabilities in the form of chat completions; None if there are none.

    Streamed entries lack `bytes`, which entries in chat completions always have.
    """
    if not raw_entries:
        return None
    return LogProbs(entries=tuple(map(_entry, raw_entries)))


def citation(annotation: Annotation) -> Citation | None:
    """Return the citation of a web page; None for the citation of a file at the provider."""
    if annotation.type != "url_citation":
        return None
    return Citation(
        url=annotation.url,
        title=annotation.title,
        start=annotation.start_index,
        end=annotation.end_index,
    )


def _entry(raw_entry: dict[str, JsonValue]) -> dict[str, JsonValue]:
    alternatives = raw_entry.get("top_logprobs")
    return {
        "bytes": None,
        **raw_entry,
        "top_logprobs": [
            {"bytes": None, **alternative}
            for alternative in (alternatives if isinstance(alternatives, list) else ())
            if isinstance(alternative, dict)
        ],
    }
