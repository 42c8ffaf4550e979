"""The simulator's decisions, which depend only on the words of the questions and the input."""

from collections.abc import Iterator, Set
from typing import Final, Literal

import pydantic_core
from pydantic import BaseModel, JsonValue

_PUNCTUATION: Final = ".,:;!?"


class _Offered(BaseModel):
    value: str | bool


class _Level(BaseModel):
    label: str


class _Question(BaseModel):
    type: Literal["predicate", "choice", "score"]
    instructions: JsonValue
    name: str | None = None
    choices: list[_Offered] = []
    levels: list[_Level] = []


class _DecisionRequest(BaseModel):
    model: str
    input: JsonValue
    questions: list[_Question]


def answer_questions(body: bytes) -> bytes:
    """Return an answer to each question from the words that it shares with the input.

    A predicate is as probable as the share of its words that the input has. The choice or level
    with most of its words in the input, or the first of several, has all of the probability.
    """
    request = _DecisionRequest.model_validate_json(body)
    evidence = _words(request.input)
    asked = [_words(question.instructions) for question in request.questions]
    known = frozenset(evidence)
    answers = [
        {"type": question.type, "name": question.name, **_answer(question, words, known)}
        for question, words in zip(request.questions, asked, strict=True)
    ]
    tokens = len(evidence) + sum(map(len, asked))
    usage = {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens,
    }
    return pydantic_core.to_json({"answers": answers, "model": request.model, "usage": usage})


def _answer(question: _Question, words: list[str], known: Set[str]) -> dict[str, object]:
    if question.type == "predicate":
        return {"probability": _share(words, known)}
    if question.type == "choice":
        values = [choice.value for choice in question.choices]
        best = _best([str(value) for value in values], known)
        chances = [
            {"value": value, "probability": float(place == best)}
            for place, value in enumerate(values)
        ]
        return {"choice": values[best], "confidence": 1.0, "probabilities": chances}
    labels = [level.label for level in question.levels]
    best = _best(labels, known)
    levels = [
        {"value": place, "label": label, "probability": float(place == best)}
        for place, label in enumerate(labels)
    ]
    return {"score": float(best), "confidence": 1.0, "probabilities": levels}


def _best(texts: list[str], known: Set[str]) -> int:
    return max(range(len(texts)), key=lambda place: _share(_words(texts[place]), known))


def _share(words: list[str], known: Set[str]) -> float:
    return sum(word in known for word in words) / max(1, len(words))


def _words(value: JsonValue) -> list[str]:
    texts = " ".join(_texts(value)).lower()
    return [word.strip(_PUNCTUATION) for word in texts.split()]


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield the text of each part in the input or in instructions."""
    match value:
        case str():
            yield value
        case {"text": str(text)}:
            yield text
        case {"content": inner} | {"output": inner}:
            yield from _texts(inner)
        case list():
            for inner in value:
                yield from _texts(inner)
        case _:
            pass
