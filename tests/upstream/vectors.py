"""Replies of servers of embeddings, in OpenAI's shape."""

from tests.scripted import frame
from tollgate.providers.ports.base import Frame


def vector(place: int) -> list[float]:
    """A vector of four numbers that says which input it is of."""
    return [float(place), 0.25, 0.5, 0.75]


def listed(inputs: int, *, tokens: int | None = 2, first: int = 0) -> Frame:
    """A whole reply; the vectors are of the inputs from `first` on, their indexes from 0."""
    data = [
        {"object": "embedding", "index": index, "embedding": vector(first + index)}
        for index in range(inputs)
    ]
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    return frame({"object": "list", "data": data, "model": "vec-1", **usage})
