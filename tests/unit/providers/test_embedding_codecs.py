"""C81: what each format sends for a batch of inputs, and reads of a documented answer.

The answers are written after the documentation that the codecs name; none is recorded.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tollgate.core.errors import UpstreamError
from tollgate.core.work.base import WorkResult
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.providers.ports.base import Frame, Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import WIRE_FORMATS

VECTOR = [0.25, -1e-7, 0.5, 1]


def target(**dialect: Any) -> Target:
    return Target(
        provider="there",
        model="acme/vec",
        upstream_model="vec:1",
        dimensions=4,
        dialect=Dialect.model_validate({"embeddings": dialect}),
    )


def work(*texts: str, **fields: Any) -> EmbeddingRequest:
    return EmbeddingRequest(model="acme/vec", texts=texts or ("a", "b"), **fields)


def sent(format_: str, asked: EmbeddingRequest, to: Target) -> list[tuple[str, dict[str, Any]]]:
    """The path and the body of each request that the work becomes."""
    codec = WIRE_FORMATS[format_].batch_codecs["embedding"]()
    wires = [codec.encode(batch, to) for batch in codec.split(asked, to)]
    return [(wire.path, dict(wire.body)) for wire in wires]


def read(
    format_: str, answer: Any, asked: EmbeddingRequest, to: Target, **headers: str
) -> WorkResult:
    codec = WIRE_FORMATS[format_].batch_codecs["embedding"]()
    shown = {name.replace("_", "-"): value for name, value in headers.items()}
    result = codec.decode(Frame(data=json.dumps(answer).encode(), headers=shown), asked, to)
    assert [json.loads(piece) for piece in result.pieces] == [VECTOR] * asked.inputs
    return result


def test_openais_names() -> None:
    openai = target(base64=True, token_ids=True)
    asked = work(encoding="base64", dimensions=2, user="u")
    assert sent("openai_chat", asked, openai) == [
        (
            "/embeddings",
            {
                "model": "vec:1",
                "input": ["a", "b"],
                "encoding_format": "base64",
                "dimensions": 2,
                "user": "u",
            },
        )
    ]
    # The model's own size is not repeated, which models without others refuse.
    [(_, plain)] = sent("openai_chat", work(dimensions=4), openai)
    assert "dimensions" not in plain


def test_voyages_and_jinas_names_are_data() -> None:
    voyage = target(
        dimensions_field="output_dimension", input_types={"query": "query"}, inputs_max=1
    )
    bodies = sent("openai_chat", work(dimensions=2, input_type="query"), voyage)
    assert [body for _, body in bodies] == [
        {"model": "vec:1", "input": [text], "output_dimension": 2, "input_type": "query"}
        for text in ("a", "b")
    ]
    jina = target(
        path="/embed/{model}",
        input_type_field="task",
        input_types={"document": "retrieval.passage"},
    )
    [(path, body)] = sent("openai_chat", work(input_type="document"), jina)
    assert (path, body["task"]) == ("/embed/vec%3A1", "retrieval.passage")
    codec = WIRE_FORMATS["openai_chat"].batch_codecs["embedding"]()
    assert codec.encode(work(input_type="clustering"), jina).adapted == ("input_type",)


def test_cohere() -> None:
    asked = work(dimensions=2, input_type="query")
    assert sent("cohere", asked, target()) == [
        (
            "/v2/embed",
            {
                "model": "vec:1",
                "texts": ["a", "b"],
                "input_type": "search_query",
                "embedding_types": ["float"],
                "truncate": "NONE",
                "output_dimension": 2,
            },
        )
    ]
    [(_, plain)] = sent("cohere", work(), target())
    assert plain["input_type"] == "search_document"
    assert len(sent("cohere", work(*["a"] * 97), target())) == 2
    answer: dict[str, Any] = {
        "id": "e-1",
        "embeddings": {"float": [VECTOR, VECTOR]},
        "texts": ["a", "b"],
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 7}},
    }
    result = read("cohere", answer, work(), target())
    assert (result.usage.uncached_input_tokens, result.upstream_id) == (7, "e-1")
    del answer["meta"]
    assert read("cohere", answer, work(), target()).usage.uncached_input_tokens is None


def test_titan() -> None:
    bodies = sent("bedrock", work(dimensions=2), target(family="titan"))
    assert bodies == [
        ("/model/vec%3A1/invoke", {"inputText": text, "dimensions": 2}) for text in ("a", "b")
    ]
    answer = {"embedding": VECTOR, "inputTextTokenCount": 3, "embeddingsByType": {}}
    result = read(
        "bedrock",
        answer,
        work("a"),
        target(family="titan"),
        x_amzn_bedrock_input_token_count="3",
        x_amzn_requestid="r-1",
    )
    assert (result.usage.uncached_input_tokens, result.upstream_id) == (3, "r-1")


def test_nova() -> None:
    [(_, body)] = sent("bedrock", work("a", input_type="query"), target(family="nova"))
    assert body == {
        "taskType": "SINGLE_EMBEDDING",
        "singleEmbeddingParams": {
            "embeddingPurpose": "TEXT_RETRIEVAL",
            "embeddingDimension": 4,
            "text": {"truncationMode": "NONE", "value": "a"},
        },
    }
    answer = {"embeddings": [{"embeddingType": "TEXT", "embedding": VECTOR}]}
    assert read("bedrock", answer, work("a"), target(family="nova")).raw_usage is None


@pytest.mark.parametrize("embeddings", [[VECTOR, VECTOR], {"float": [VECTOR, VECTOR]}])
def test_cohere_on_bedrock(embeddings: Any) -> None:
    [(path, body)] = sent("bedrock", work(), target(family="cohere"))
    assert path == "/model/vec%3A1/invoke"
    assert (body["texts"], body["truncate"]) == (["a", "b"], "NONE")
    assert "model" not in body
    answer = {"embeddings": embeddings, "id": "e-1", "response_type": "embeddings_by_type"}
    read("bedrock", answer, work(), target(family="cohere"))


def test_gemini_on_ai_studio() -> None:
    [(path, body)] = sent("gemini", work("a", dimensions=2, input_type="query"), target())
    assert path == "/v1beta/models/vec%3A1:batchEmbedContents"
    assert body == {
        "requests": [
            {
                "model": "models/vec:1",
                "taskType": "RETRIEVAL_QUERY",
                "outputDimensionality": 2,
                "content": {"parts": [{"text": "a"}]},
            }
        ]
    }
    result = read("gemini", {"embeddings": [{"values": VECTOR}] * 2}, work(), target())
    assert result.usage.uncached_input_tokens is None


def test_gemini_on_vertex() -> None:
    vertex = replace(target(), project="p", location="l")
    [(path, body)] = sent("gemini", work("a", dimensions=2, input_type="document"), vertex)
    assert path == "/v1/projects/p/locations/l/publishers/google/models/vec%3A1:predict"
    assert body == {
        "instances": [{"task_type": "RETRIEVAL_DOCUMENT", "content": "a"}],
        "parameters": {"autoTruncate": False, "outputDimensionality": 2},
    }
    prediction = {"embeddings": {"values": VECTOR, "statistics": {"token_count": 3.0}}}
    result = read("gemini", {"predictions": [prediction] * 2}, work(), vertex)
    assert result.usage.uncached_input_tokens == 6


@pytest.mark.parametrize("format_", ["openai_chat", "cohere", "bedrock", "gemini"])
@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b"null", b'{"data": 1}'])
def test_what_is_no_answer_is_the_providers_fault(format_: str, body: bytes) -> None:
    codec = WIRE_FORMATS[format_].batch_codecs["embedding"]()
    for family in ("titan", "nova", "cohere"):
        with pytest.raises(UpstreamError):
            codec.decode(Frame(data=body), work("a"), target(family=family))
