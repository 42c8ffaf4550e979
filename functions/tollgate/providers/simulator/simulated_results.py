"""The simulator's vectors, rankings and moderations, which depend only on words."""

import hashlib
import math
import struct
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, Literal

import pydantic_core
from pydantic import BaseModel

_DIMENSIONS: Final = 256
# Further words are ignored, because each word costs time and no test needs more.
_WORDS_MAX: Final = 64


class _EmbeddingRequest(BaseModel):
    model: str
    input: list[str | list[int]]
    dimensions: int = _DIMENSIONS
    encoding_format: Literal["float", "base64"] = "float"


def embed(body: bytes) -> bytes:
    """Return a vector for each input, the sum of the vectors for its words or token ids.

    The usage counts each word and each token id as one token.
    """
    request = _EmbeddingRequest.model_validate_json(body)
    words = [_words(input_words) for input_words in request.input]
    vector_of_word: dict[str, tuple[float, ...]] = {}
    data = []
    for index, input_words in enumerate(words):
        vector = _vector(input_words[:_WORDS_MAX], request.dimensions, vector_of_word)
        packed = struct.pack(f"<{len(vector)}f", *vector)
        embedding = vector if request.encoding_format == "float" else b64encode(packed).decode()
        data.append({"object": "embedding", "index": index, "embedding": embedding})
    tokens = sum(map(len, words))
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return pydantic_core.to_json(
        {"object": "list", "data": data, "model": request.model, "usage": usage}
    )


def _words(text: str | list[int]) -> list[str]:
    if isinstance(text, str):
        return text.lower().split() or [text]
    return [f"#{number}" for number in text]


def _vector(
    words: list[str], size: int, vector_of_word: dict[str, tuple[float, ...]]
) -> list[float]:
    total = [0.0] * size
    for word in words:
        if word not in vector_of_word:
            digest = hashlib.shake_256(word.encode()).digest(2 * size)
            vector_of_word[word] = tuple(map(float, struct.unpack(f"<{size}h", digest)))
        total = [sum(pair) for pair in zip(total, vector_of_word[word], strict=True)]
    length = math.sqrt(sum(number * number for number in total)) or 1.0
    return [round(number / length, 9) for number in total]


class _RerankRequest(BaseModel):
    query: str
    documents: list[str]
    top_n: int


def rank_documents(body: bytes) -> bytes:
    """Return the documents, ranked by the share of the query's words in each document."""
    request = _RerankRequest.model_validate_json(body)
    query_words = set(_words(request.query))
    texts = [_words(document) for document in request.documents]
    scores = [len(query_words.intersection(words)) / len(query_words) for words in texts]
    order = sorted(range(len(texts)), key=lambda place: -scores[place])[: request.top_n]
    tokens = sum(len(words) + len(query_words) for words in texts)
    results = [{"index": place, "relevance_score": scores[place]} for place in order]
    return pydantic_core.to_json({"results": results, "usage": {"total_tokens": tokens}})


class _PictureAddress(BaseModel):
    url: str


class _JudgedPart(BaseModel):
    text: str = ""
    image_url: _PictureAddress | None = None


class _ModerationRequest(BaseModel):
    model: str
    input: list[str] | list[_JudgedPart]


def moderate(body: bytes) -> bytes:
    """Return a moderation for each text, or one moderation for all parts together.

    Texts with the word `harm` are flagged, and images whose bytes or URL contain these letters.
    """
    request = _ModerationRequest.model_validate_json(body)
    texts = [each for each in request.input if isinstance(each, str)]
    parts = [each for each in request.input if not isinstance(each, str)]
    results = [_judgement({"text": "harm" in _words(text)}) for text in texts]
    if parts:
        harms_by_type: dict[str, bool] = {}
        for part in parts:
            image = part.image_url
            name = "image" if image else "text"
            harms = b"harm" in _content(image.url) if image else "harm" in _words(part.text)
            harms_by_type[name] = harms_by_type.get(name, False) or harms
        results.append(_judgement(harms_by_type))
    return pydantic_core.to_json({"id": "sim", "model": request.model, "results": results})


def _judgement(harms_by_type: Mapping[str, bool]) -> dict[str, object]:
    flagged = any(harms_by_type.values())
    return {
        "flagged": flagged,
        "categories": {"violence": flagged},
        "category_scores": {"violence": float(flagged)},
        "category_applied_input_types": {"violence": list(harms_by_type)},
    }


def _content(url: str) -> bytes:
    head, _, content = url.partition(";base64,")
    return b64decode(content) if content else head.encode()
