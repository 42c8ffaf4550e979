"""The models of routing.yaml that do other work than chat, and what is sent for them: C81."""

from typing import Any, get_args

from tests.cells import cells
from tests.unit.routing.test_routing_yaml import FILE
from tollgate.core.content import Text
from tollgate.core.work.base import InputWork
from tollgate.core.work.decision import DecisionRequest
from tollgate.core.work.embedding import EmbeddingRequest
from tollgate.core.work.images import ImageRequest
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.moderation import ModerationRequest
from tollgate.core.work.recording import Recording
from tollgate.core.work.reranking import RerankRequest
from tollgate.core.work.speech import SpeechRequest
from tollgate.core.work.transcription import TranscriptionRequest
from tollgate.core.work.video import VideoRequest
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.file.load import load
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.offers import Chains

CATALOG = Catalog.from_json(canonical_json(load(FILE)))
CHAINS = Chains(CATALOG)
WORKS = [slug for slug, model in CATALOG.models.items() if model.kind != "chat"]


def requested(slug: str, **fields: Any) -> InputWork:
    match CATALOG.models[slug].kind:
        case "embedding":
            return EmbeddingRequest(model=slug, texts=("a", "b"), **fields)
        case "rerank":
            return RerankRequest(model=slug, query="q", documents=("a", "b"), **fields)
        case "decision":
            asked = ({"type": "predicate", "instructions": "a"},)
            return DecisionRequest(model=slug, evidence="b", questions=asked, **fields)
        case "image":
            return ImageRequest(model=slug, prompt="a cat", **fields)
        case "speech":
            sound = "wav" if "mp3" not in takes(slug) else "mp3"
            return SpeechRequest(
                **{"model": slug, "text": "a", "voice": "b", "sound": sound, **fields}
            )
        case "video":
            return VideoRequest(model=slug, prompt="a cat", **fields)
        case "transcription":
            sound = Recording(content=b"", format="wav", seconds=1, seconds_max=1)
            return TranscriptionRequest(**{"model": slug, "recording": sound, **fields})
        case _:
            subjects = ((Text(text="a"),), (Text(text="b"),))
            return ModerationRequest(model=slug, subjects=subjects, **fields)


def takes(slug: str) -> frozenset[str]:
    """What the first endpoint of a model has room for."""
    chain = CHAINS.get(slug)
    assert chain is not None
    return chain.offers[slug][0].attempt.target.takes


def sent(slug: str, **fields: Any) -> dict[str, tuple[str, Any]]:
    """The path and the body of the first request to each provider of a model."""
    chain = CHAINS.get(slug)
    assert chain is not None
    found = {}
    for offer in chain.offers[slug]:
        target = offer.attempt.target
        wire_format = WIRE_FORMATS[CATALOG.providers[target.provider].codec]
        kind, work = CATALOG.models[slug].kind, requested(slug, **fields)
        if kind not in wire_format.batch_codecs:
            wire = wire_format.stream_codecs[kind]().encode(work, target)
        else:
            codec = wire_format.batch_codecs[kind]()
            wire = codec.encode(codec.split(work, target)[0], target)
        found[target.provider] = (wire.path, wire.body)
    return found


@cells("slug", WORKS)
def test_every_endpoint_of_another_kind_can_be_asked(slug: str) -> None:
    assert len(sent(slug)) == len(CATALOG.models[slug].endpoints)


def test_the_rows_have_their_providers_names_of_fields() -> None:
    asked: dict[str, Any] = {"dimensions": 512, "input_type": "query"}
    assert sent("voyageai/voyage-4", **asked)["voyage"] == (
        "/embeddings",
        {"model": "voyage-4", "input": ["a", "b"], "output_dimension": 512, "input_type": "query"},
    )
    both = sent("cohere/embed-v4.0", **asked)
    fields = {
        "texts": ["a", "b"],
        "input_type": "search_query",
        "embedding_types": ["float"],
        "truncate": "NONE",
        "output_dimension": 512,
    }
    assert both["cohere-native"] == ("/v2/embed", {"model": "embed-v4.0", **fields})
    assert both["bedrock"] == ("/model/cohere.embed-v4%3A0/invoke", fields)
    openai = sent("openai/text-embedding-3-small", encoding="base64")["openai"][1]
    assert openai["encoding_format"] == "base64"
    ranked = sent("voyageai/rerank-2.5", results_max=1)["voyage"]
    assert (ranked[0], ranked[1]["top_k"]) == ("/rerank", 1)


def test_c82_the_rows_send_what_their_providers_take() -> None:
    asked: dict[str, Any] = {"count": 2, "size": "1536x1024", "quality": "low", "style": "vivid"}
    path, body = sent("openai/gpt-image-2", **asked)["openai"]
    assert (path, body) == (
        "/images/generations",
        {
            "model": "gpt-image-2",
            "prompt": "a cat",
            "quality": "low",
            "size": "1536x1024",
            "n": 2,
        },
    )
    assert sent("x-ai/grok-imagine-image-2.0", **asked)["xai"][1] == {
        "model": "grok-imagine-image-2.0",
        "prompt": "a cat",
        "quality": "low",
        "aspect_ratio": "3:2",
        "n": 2,
        "response_format": "b64_json",
    }
    assert sent("stabilityai/stable-image-core", **asked)["bedrock-oregon"] == (
        "/model/stability.stable-image-core-v1%3A1/invoke",
        {"prompt": "a cat", "aspect_ratio": "3:2"},
    )


def test_c81_each_kind_of_work_has_models_of_several_providers() -> None:
    providers: dict[str, set[str]] = {}
    for model in CATALOG.models.values():
        providers.setdefault(model.kind, set()).update(it.provider for it in model.endpoints)
    assert {"bedrock", "cohere-native", "google", "mistral", "openai", "voyage"} <= providers[
        "embedding"
    ]
    assert {"bedrock", "cohere-native", "jina", "voyage"} <= providers["rerank"]
    assert providers["moderation"] == providers["decision"] == {"openai"}
    assert providers["image"] == {"bedrock-oregon", "google", "openai", "xai"}
    assert providers["speech"] == {"google", "groq", "openai"}
    assert providers["transcription"] == {"groq", "openai"}
    # Shut down on 2026-09-24, so that its name says so; other servers are rows of their own.
    assert providers["video"] == {"openai"}
    assert providers.keys() == set(get_args(WorkKind))


def transcribed(slug: str, **fields: Any) -> dict[str, bytes]:
    """The parts of the form for a model's first endpoint."""
    chain = CHAINS.get(slug)
    assert chain is not None
    target = chain.offers[slug][0].attempt.target
    work = requested(slug, **fields)
    assert isinstance(work, TranscriptionRequest)
    wire = WIRE_FORMATS["openai_chat"].stream_codecs["transcription"]().encode(work, target)
    return {part.name: part.content for part in wire.form}


def test_c82_transcribers_are_asked_for_the_most_that_they_have() -> None:
    asked: dict[str, Any] = {"stream": True, "logprobs": True, "prompt": "p"}
    streamed = transcribed("openai/gpt-4o-transcribe", **asked)
    assert (streamed["response_format"], streamed["stream"]) == (b"json", b"true")
    assert streamed["include[]"] == b"logprobs"
    whole = transcribed("openai/whisper-large-v3-turbo", **asked)
    assert (whole["response_format"], "stream" in whole) == (b"verbose_json", False)
    speakers = transcribed("openai/gpt-4o-transcribe-diarize", details=frozenset({"speakers"}))
    assert speakers["response_format"] == b"diarized_json"
    assert takes("openai/whisper-1") >= {"segments", "words", "translation"}
    assert "translation" not in takes("openai/whisper-large-v3-turbo")


def test_c82_speech_by_tokens_is_requested_in_events_and_by_characters_in_bytes() -> None:
    path, body = sent("openai/gpt-4o-mini-tts", instructions="Slowly.")["openai"]
    assert (path, body["stream_format"]) == ("/audio/speech", "sse")
    assert body["instructions"] == "Slowly."
    plain = sent("openai/tts-1", instructions="Slowly.")["openai"][1]
    assert not {"instructions", "stream_format"} & plain.keys()
    assert sent("google/gemini-3.8-flash-tts")["google"][0].endswith(
        "/gemini-3.8-flash-tts:streamGenerateContent?alt=sse"
    )
    assert takes("canopylabs/orpheus-v1-english") >= {"wav"}


def test_c81_vectors_of_one_space_stand_in_for_each_other_and_others_never() -> None:
    spaces: dict[str, set[str]] = {}
    for slug, model in CATALOG.models.items():
        if model.vectors is not None and model.vectors.space is not None:
            spaces.setdefault(model.vectors.space, set()).add(slug)
    assert spaces == {
        "cohere-embed-v5": {"cohere/embed-v5.0-fast", "cohere/embed-v5.0-pro"},
        "voyage-4": {"voyageai/voyage-4", "voyageai/voyage-4-large", "voyageai/voyage-4-lite"},
    }
