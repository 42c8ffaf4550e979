"""The table of client formats, with one row per format.

A new format needs a folder, a row here, and its path and method in infra/template.yaml. Routes
(`web/chat_app.py`) and the API description (`web/openapi.py`) are derived from the rows. Rows refer
to classes and models by dotted name, so a format is imported at its first request.
"""

from collections.abc import Mapping
from typing import Final

from tollgate.core.dotted_names import DottedName
from tollgate.core.ids import IdSource
from tollgate.core.json_value import JsonValue
from tollgate.ingress.base import Ingress
from tollgate.ingress.format_rows import (
    FormatModels,
    IngressFormat,
    PathAlias,
    TokenCounting,
)

# Clients of Anthropic's Messages API send this header with every request.
ANTHROPIC_VERSION: Final = "anthropic-version"

_CHAT_EXAMPLE: Final[Mapping[str, JsonValue]] = {
    "model": "test/echo",
    "messages": [{"role": "user", "content": "Say hello."}],
    "max_tokens": 100,
}
_PICTURE_EXAMPLE: Final = {"model": "test/image", "prompt": "A red bridge in fog"}
_QUESTION_EXAMPLE: Final[JsonValue] = {"type": "predicate", "instructions": "It is urgent."}
_SOUND_EXAMPLE: Final = {"model": "test/transcribe", "url": "https://files.example/meeting.mp3"}
CHAT_COMPLETIONS: Final = IngressFormat(
    name="chat_completions",
    path="/v1/chat/completions",
    make=DottedName("tollgate.ingress.chat_completions:ChatCompletions"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.chat_completions.wire.plugins:ChatRequest"),
        reply=DottedName("tollgate.ingress.chat_completions.wire.response:ChatCompletion"),
        event=DottedName("tollgate.ingress.chat_completions.wire.response:ChatCompletionChunk"),
        failure=DottedName("tollgate.ingress.chat_completions.wire.response:ChatCompletionFailure"),
    ),
    tag="chat",
    summary="Create Chat Completion",
    description="Generate an answer, streamed or not; billed to the key.",
    operation_id="create_chat_completion",
    example=_CHAT_EXAMPLE,
)
COMPLETIONS: Final = IngressFormat(
    name="completions",
    path="/v1/completions",
    make=DottedName("tollgate.ingress.completions:Completions"),
    models=FormatModels(
        request=DottedName(
            "tollgate.ingress.completions.wire.completion_request:CompletionRequest"
        ),
        reply=DottedName("tollgate.ingress.completions.wire.completion_reply:Completion"),
        event=DottedName("tollgate.ingress.completions.wire.completion_reply:CompletionChunk"),
        failure=DottedName("tollgate.ingress.completions.wire.completion_reply:CompletionFailure"),
    ),
    tag="completions",
    summary="Create Completion",
    description="Complete one or more prompts in OpenAI's legacy format; billed to the key.",
    operation_id="create_completion",
    example={"model": "test/complete", "prompt": "Once upon a time"},
)
MESSAGES: Final = IngressFormat(
    name="messages",
    path="/v1/messages",
    make=DottedName("tollgate.ingress.messages:Messages"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.messages.wire.request:MessagesRequest"),
        reply=DottedName("tollgate.ingress.messages.wire.reply:MessageReply"),
        event=DottedName("tollgate.ingress.messages.wire.reply:MessageStreamEvent"),
        failure=DottedName("tollgate.ingress.messages.wire.reply:ErrorEvent"),
        error=DottedName("tollgate.ingress.messages.wire.reply:MessagesErrorEnvelope"),
        count_request=DottedName("tollgate.ingress.messages.wire.request:CountTokensRequest"),
        count_reply=DottedName("tollgate.ingress.messages.wire.reply:MessageTokensCount"),
    ),
    tag="messages",
    summary="Create Message",
    description="Generate an answer in Anthropic's format, streamed or not; billed to the key.",
    operation_id="create_message",
    example=_CHAT_EXAMPLE,
    id_header="request-id",
    counting=TokenCounting(
        path="/v1/messages/count_tokens",
        parse=DottedName("tollgate.ingress.messages.parse:parse_count_request"),
        render=lambda tokens: b'{"input_tokens":%d}' % tokens,
        summary="Count Message Tokens",
        operation_id="count_message_tokens",
    ),
)
RESPONSES: Final = IngressFormat(
    name="responses",
    path="/v1/responses",
    make=DottedName("tollgate.ingress.responses:Responses"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.responses.wire.response_request:ResponsesRequest"),
        reply=DottedName("tollgate.ingress.responses.wire.response_reply:ResponseObject"),
        event=DottedName("tollgate.ingress.responses.wire.response_events:ResponseEvent"),
        failure=DottedName("tollgate.ingress.responses.wire.response_events:ResponseFailed"),
        error=DottedName("tollgate.ingress.responses.wire.response_reply:ResponsesErrorEnvelope"),
        count_request=DottedName(
            "tollgate.ingress.responses.wire.response_request:ResponsesRequest"
        ),
        count_reply=DottedName(
            "tollgate.ingress.responses.wire.response_reply:ResponseInputTokens"
        ),
    ),
    tag="responses",
    summary="Create Response",
    description="Generate an answer in OpenAI's Responses format, streamed or not; billed to the "
    "key, and stored if `response_days` is set for the key or its workspace.",
    operation_id="create_response",
    example={"model": "test/echo", "input": "Say hello."},
    counting=TokenCounting(
        path="/v1/responses/input_tokens",
        parse=DottedName("tollgate.ingress.responses.parse:parse_response_count"),
        render=lambda tokens: b'{"object":"response.input_tokens","input_tokens":%d}' % tokens,
        summary="Count Response Input Tokens",
        operation_id="count_response_input_tokens",
    ),
    parse_read=DottedName("tollgate.ingress.responses.parse:parse_response_object"),
)
COMPACT: Final = IngressFormat(
    name="responses_compact",
    path="/v1/responses/compact",
    make=DottedName("tollgate.ingress.responses.compact:CompactedResponses"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.responses.wire.response_request:CompactRequest"),
        reply=DottedName("tollgate.ingress.responses.wire.response_reply:CompactedResponse"),
        error=DottedName("tollgate.ingress.responses.wire.response_reply:ResponsesErrorEnvelope"),
    ),
    tag="responses",
    summary="Compact Response",
    description="Replace a conversation by a sealed record, which a model writes. Any model can "
    "continue from the record. The key is billed for writing it.",
    operation_id="compact_response",
    example={"model": "test/echo", "input": [{"role": "user", "content": "Say hello."}]},
    parse_read=DottedName("tollgate.ingress.responses.compact:parse_compact_object"),
)
EMBEDDINGS: Final = IngressFormat(
    name="embeddings",
    path="/v1/embeddings",
    make=DottedName("tollgate.ingress.work.embeddings.format:Embeddings"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.embeddings.models:EmbeddingsRequest"),
        reply=DottedName("tollgate.ingress.work.embeddings.models:EmbeddingsReply"),
    ),
    tag="embeddings",
    summary="Create Embeddings",
    description="Turn texts or token ids into vectors, in OpenAI's format; billed to the key.",
    operation_id="create_embeddings",
    example={"model": "test/embed", "input": ["A red bridge", "A blue boat"]},
)
RERANK: Final = IngressFormat(
    name="rerank",
    path="/v1/rerank",
    make=DottedName("tollgate.ingress.work.rerank.format:Rerank"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.rerank.models:RerankBody"),
        reply=DottedName("tollgate.ingress.work.rerank.models:RerankReply"),
    ),
    tag="rerank",
    summary="Rank Documents",
    description="Rank documents by their relevance to a query; billed to the key.",
    operation_id="rerank_documents",
    example={
        "model": "test/rerank",
        "query": "Where is the bridge?",
        "documents": ["The bridge is in the north.", "The boat is blue."],
    },
    # ClientV2 in Cohere's SDK (cohere 5.21.1, 2026-11-22) appends `/v2/rerank` to its base URL. The
    # rerankers of LangChain and LlamaIndex use ClientV2.
    alias=PathAlias(
        path="/v1/v2/rerank",
        summary="Rank Documents for Cohere's Clients",
        operation_id="rerank_documents_v2",
    ),
)
MODERATIONS: Final = IngressFormat(
    name="moderations",
    path="/v1/moderations",
    make=DottedName("tollgate.ingress.work.moderations.format:Moderations"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.moderations.models:ModerationBody"),
        reply=DottedName("tollgate.ingress.work.moderations.models:ModerationReply"),
    ),
    tag="moderations",
    summary="Create Moderation",
    description="Classify harmful content in texts and images, in OpenAI's format; billed to the "
    "key.",
    operation_id="create_moderation",
    example={"model": "test/moderate", "input": "Say hello."},
)
DECISIONS: Final = IngressFormat(
    name="decisions",
    path="/v1/decisions",
    make=DottedName("tollgate.ingress.work.decisions.format:Decisions"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.decisions.models:DecisionBody"),
        reply=DottedName("tollgate.ingress.work.decisions.models:DecisionReply"),
    ),
    tag="decisions",
    summary="Create Decision",
    description="Answer typed questions with probabilities, in OpenAI's format; billed to the key.",
    operation_id="create_decision",
    example={"model": "test/decide", "input": "Hurry up!", "questions": [_QUESTION_EXAMPLE]},
)
IMAGE_GENERATIONS: Final = IngressFormat(
    name="image_generations",
    path="/v1/images/generations",
    make=DottedName("tollgate.ingress.work.images.format:ImageGenerations"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.images.models:GenerationBody"),
        reply=DottedName("tollgate.ingress.work.images.models:ImagesReply"),
        event=DottedName("tollgate.ingress.work.images.models:ImageEvent"),
        failure=DottedName("tollgate.ingress.work.images.models:ImageFailure"),
    ),
    tag="images",
    summary="Create Images",
    description="Generate images from a text, in OpenAI's format, streamed or not; billed to the "
    "key.",
    operation_id="create_images",
    example=_PICTURE_EXAMPLE,
)
IMAGE_EDITS: Final = IngressFormat(
    name="image_edits",
    path="/v1/images/edits",
    make=DottedName("tollgate.ingress.work.images.format:ImageEdits"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.images.models:EditBody"),
        form=DottedName("tollgate.ingress.work.images.models:EditForm"),
        reply=DottedName("tollgate.ingress.work.images.models:ImagesReply"),
        event=DottedName("tollgate.ingress.work.images.models:ImageEvent"),
        failure=DottedName("tollgate.ingress.work.images.models:ImageFailure"),
    ),
    tag="images",
    summary="Edit Images",
    description="Edit images as a text describes, in OpenAI's format, streamed or not; billed to "
    "the key.",
    operation_id="edit_images",
    example={**_PICTURE_EXAMPLE, "images": [{"image_url": "https://files.example/1.png"}]},
)
SPEECH: Final = IngressFormat(
    name="speech",
    path="/v1/audio/speech",
    make=DottedName("tollgate.ingress.work.speech.format:Speech"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.speech.models:SpeechBody"),
        media_types=DottedName("tollgate.ingress.work.speech.format:MEDIA_TYPES"),
        event=DottedName("tollgate.ingress.work.speech.models:SpeechEvent"),
        failure=DottedName("tollgate.ingress.work.speech.models:SpeechFailure"),
    ),
    tag="speech",
    summary="Create Speech",
    description="Speak a text; the audio is streamed as the provider sends it. Billed to the key.",
    operation_id="create_speech",
    example={"model": "test/speech", "input": "Hello.", "voice": "alloy"},
)
TRANSCRIPTIONS: Final = IngressFormat(
    name="transcriptions",
    path="/v1/audio/transcriptions",
    make=DottedName("tollgate.ingress.work.transcription.format:Transcriptions"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.transcription.models:TranscriptionBody"),
        form=DottedName("tollgate.ingress.work.transcription.models:TranscriptionForm"),
        reply=DottedName("tollgate.ingress.work.transcription.models:TranscriptReply"),
        media_types=DottedName("tollgate.ingress.work.transcription.format:TEXT_TYPES"),
        event=DottedName("tollgate.ingress.work.transcription.models:TranscriptEvent"),
        failure=DottedName("tollgate.ingress.work.transcription.models:TranscriptFailure"),
    ),
    tag="transcription",
    summary="Create Transcription",
    description="Transcribe a recording, in OpenAI's format; billed to the key.",
    operation_id="create_transcription",
    example=_SOUND_EXAMPLE,
)
TRANSLATIONS: Final = IngressFormat(
    name="translations",
    path="/v1/audio/translations",
    make=DottedName("tollgate.ingress.work.transcription.format:Translations"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.transcription.models:TranslationBody"),
        form=DottedName("tollgate.ingress.work.transcription.models:TranslationForm"),
        reply=DottedName("tollgate.ingress.work.transcription.models:TranscriptReply"),
        media_types=DottedName("tollgate.ingress.work.transcription.format:TEXT_TYPES"),
        event=DottedName("tollgate.ingress.work.transcription.models:TranscriptEvent"),
        failure=DottedName("tollgate.ingress.work.transcription.models:TranscriptFailure"),
    ),
    tag="transcription",
    summary="Create Translation",
    description="Translate a recording into English text, in OpenAI's format; billed to the key.",
    operation_id="create_translation",
    example=_SOUND_EXAMPLE,
)
VIDEOS: Final = IngressFormat(
    name="videos",
    path="/v1/videos",
    make=DottedName("tollgate.ingress.work.videos.format:Videos"),
    models=FormatModels(
        request=DottedName("tollgate.ingress.work.videos.models:VideoBody"),
        form=DottedName("tollgate.ingress.work.videos.models:VideoForm"),
        reply=DottedName("tollgate.ingress.work.videos.models:VideoObject"),
    ),
    tag="videos",
    summary="Create Video",
    description="Queue a video, in OpenAI's format; its price is held at once, and the key is "
    "billed if the video is completed.",
    operation_id="create_video",
    example={"model": "test/video", "prompt": "A red bridge in fog", "seconds": "4"},
)

FORMATS: Final = (
    CHAT_COMPLETIONS,
    COMPLETIONS,
    MESSAGES,
    RESPONSES,
    COMPACT,
    EMBEDDINGS,
    RERANK,
    MODERATIONS,
    DECISIONS,
    IMAGE_GENERATIONS,
    IMAGE_EDITS,
    SPEECH,
    TRANSCRIPTIONS,
    TRANSLATIONS,
    VIDEOS,
)


class Ingresses(dict[str, Ingress]):
    """A dict of client formats, keyed by name; each format is created at first use."""

    def __init__(self, ids: IdSource) -> None:
        super().__init__()
        self._ids = ids

    def __missing__(self, name: str) -> Ingress:
        row = next(row for row in FORMATS if row.name == name)
        ingress = self[name] = row.make()(self._ids)
        return ingress
