"""A round of retrieval against `tollgate dev` by the official SDKs: embed, rerank, judge, decide.

Keeps C7, C81.
"""

import json
import subprocess
from collections.abc import Iterator
from operator import mul
from typing import Any

import openai
import pytest

from tests.local_server import ROOT, LocalServer, environment, local_server
from tests.node_sdks import node_program
from tests.pictures import data_url, png

DOCUMENTS = [
    "Paris is the capital of France",
    "A cell has many mitochondria",
    "Berlin is the capital of Germany",
]
QUESTION = "the capital of Germany"
FOUND = DOCUMENTS[2]
_PACKAGES = ROOT / ".tools/node/node_modules"
_PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with local_server(tmp_path_factory.mktemp("retrieval")) as started:
        yield started


@pytest.fixture
def client(server: LocalServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.base_url, api_key=server.key, max_retries=0) as started:
        yield started


def nearest(question: list[float], documents: list[list[float]]) -> int:
    def likeness(place: int) -> float:
        return sum(map(mul, question, documents[place]))

    return max(range(len(documents)), key=likeness)


@pytest.mark.parametrize("options", [{}, {"encoding_format": "float"}, {"dimensions": 64}])
def test_c7_c81_python_embeds_ranks_and_answers(
    client: openai.OpenAI, options: dict[str, Any]
) -> None:
    made = client.embeddings.create(
        model="test/embed", input=[QUESTION, *DOCUMENTS], **options
    ).data
    question, *documents = (each.embedding for each in made)
    assert {len(each.embedding) for each in made} == {options.get("dimensions", 256)}
    assert DOCUMENTS[nearest(question, documents)] == FOUND
    ranked = client.post(
        "/rerank",
        cast_to=object,
        body={"model": "test/rerank", "query": QUESTION, "documents": DOCUMENTS, "top_n": 1},
    )
    assert isinstance(ranked, dict)
    (best,) = ranked["results"]
    assert DOCUMENTS[best["index"]] == FOUND
    answer = client.chat.completions.create(
        model="test/echo", messages=[{"role": "user", "content": DOCUMENTS[best["index"]]}]
    )
    assert answer.choices[0].message.content == FOUND


def test_c7_c81_python_sends_token_ids(client: openai.OpenAI) -> None:
    made = client.embeddings.create(model="test/embed", input=[[1, 2, 3], [4]]).data
    assert [each.index for each in made] == [0, 1]


def test_c7_c81_python_has_texts_and_pictures_judged(client: openai.OpenAI) -> None:
    each = client.moderations.create(model="test/moderate", input=["do harm", "be kind"])
    assert [it.flagged for it in each.results] == [True, False]
    together = client.moderations.create(
        model="test/moderate",
        input=[
            {"type": "text", "text": "be kind"},
            {"type": "image_url", "image_url": {"url": data_url(png() + b"harm")}},
        ],
    )
    assert [it.flagged for it in together.results] == [True]


def test_c7_c81_python_has_questions_decided(client: openai.OpenAI) -> None:
    made = client.decisions.create(
        model="test/decide",
        input=[{"role": "user", "content": [{"type": "input_text", "text": "Refund my order!"}]}],
        questions=[
            {"type": "predicate", "name": "money", "instructions": "refund wanted"},
            {
                "type": "choice",
                "instructions": "?",
                "choices": [{"value": "cat"}, {"value": "refund"}],
            },
            {
                "type": "score",
                "instructions": "?",
                "levels": [{"label": "cat"}, {"label": "order"}],
            },
        ],
    )
    predicate, choice, score = made.answers
    assert predicate.to_dict() == {"type": "predicate", "name": "money", "probability": 0.5}
    assert choice.to_dict()["choice"] == "refund"
    assert score.to_dict()["score"] == 1.0
    assert (made.model, made.usage.input_tokens) == ("test/decide", 7)


def test_c7_c81_node_embeds_ranks_and_answers(server: LocalServer) -> None:
    said = subprocess.run(
        [node_program(), str(ROOT / "tests/node/retrieval.mjs"), server.base_url],
        env=environment() | {"KEY": server.key, "PACKAGES": str(_PACKAGES)},
        input=json.dumps({"documents": DOCUMENTS, "question": QUESTION}),
        capture_output=True,
        text=True,
        check=True,
        timeout=_PATIENCE_S,
    )
    assert json.loads(said.stdout) == {"sizes": [256] * 3, "answer": FOUND, "flagged": True}
