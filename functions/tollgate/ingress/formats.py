"""The client formats that are served, one row for each.

The wiring makes them, `web/chat_app.py` gives each its route, `web/openapi.py` describes it: a new
format is its folder and a row here (and the path's method in infra/template.yaml).
"""

from collections.abc import Mapping
from typing import Final

from tollgate.core.ids import IdSource
from tollgate.core.request import GenerationRequest
from tollgate.ingress.base import Ingress
from tollgate.ingress.format_row import FormatModels, IngressFormat, PathAlias, TokenCounting
from tollgate.ingress.image_formats import IMAGE_EDITS, IMAGE_GENERATIONS
from tollgate.ingress.sound_formats import SPEECH, TRANSCRIPTIONS, TRANSLATIONS

# The header that clients of Anthropic's Messages send with every request.
ANTHROPIC_VERSION: Final = "anthropic-version"


def _make_chat_completions(ids: IdSource) -> Ingress:
    # Not imported by the functions that serve no generations.
    from tollgate.ingress.chat_completions import ChatCompletions

    return ChatCompletions(ids)


def _load_chat_completions_models() -> FormatModels:
    from tollgate.ingress.chat_completions.wire.plugins import ChatRequest
    from tollgate.ingress.chat_completions.wire.response import (
        ChatCompletion,
        ChatCompletionChunk,
        ChatCompletionFailure,
    )
    from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope

    return FormatModels(
        request=ChatRequest,
        reply=ChatCompletion,
        event=ChatCompletionChunk,
        failure=ChatCompletionFailure,
        error=ErrorEnvelope,
    )


def _load_completions_models() -> FormatModels:
    from tollgate.ingress.completions.wire.completion_reply import (
        Completion,
        CompletionChunk,
        CompletionFailure,
    )
    from tollgate.ingress.completions.wire.completion_request import CompletionRequest
    from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope

    return FormatModels(
        request=CompletionRequest,
        reply=Completion,
        event=CompletionChunk,
        failure=CompletionFailure,
        error=ErrorEnvelope,
    )


CHAT_COMPLETIONS: Final = IngressFormat(
    name="chat_completions",
    path="/v1/chat/completions",
    make=_make_chat_completions,
    load_models=_load_chat_completions_models,
    tag="chat",
    summary="Create Chat Completion",
    description="Generate an answer, whole or streamed; it is billed to the key.",
    operation_id="create_chat_completion",
)


def _make_completions(ids: IdSource) -> Ingress:
    # Imported with its first request: most deployments start without it.
    from tollgate.ingress.completions import Completions

    return Completions(ids)


COMPLETIONS: Final = IngressFormat(
    name="completions",
    path="/v1/completions",
    make=_make_completions,
    load_models=_load_completions_models,
    tag="completions",
    summary="Create Completion",
    description="Complete one prompt or several in OpenAI's legacy format; billed to the key.",
    operation_id="create_completion",
)


def _make_messages(ids: IdSource) -> Ingress:
    from tollgate.ingress.messages import Messages

    return Messages(ids)


def _load_messages_models() -> FormatModels:
    from tollgate.ingress.messages.wire.reply import (
        ErrorEvent,
        MessageReply,
        MessagesErrorEnvelope,
        MessageStreamEvent,
        MessageTokensCount,
    )
    from tollgate.ingress.messages.wire.request import CountTokensRequest, MessagesRequest

    return FormatModels(
        request=MessagesRequest,
        reply=MessageReply,
        event=MessageStreamEvent,
        failure=ErrorEvent,
        error=MessagesErrorEnvelope,
        count_request=CountTokensRequest,
        count_reply=MessageTokensCount,
    )


def _parse_message_count(body: bytes, headers: Mapping[str, str]) -> GenerationRequest:
    from tollgate.ingress.messages.parse import parse_count_request

    return parse_count_request(body, headers)


MESSAGES: Final = IngressFormat(
    name="messages",
    path="/v1/messages",
    make=_make_messages,
    load_models=_load_messages_models,
    tag="messages",
    summary="Create Message",
    description="Generate an answer in Anthropic's format, whole or streamed; it is billed to the "
    "key.",
    operation_id="create_message",
    id_header="request-id",
    counting=TokenCounting(
        path="/v1/messages/count_tokens",
        parse=_parse_message_count,
        render=lambda tokens: b'{"input_tokens":%d}' % tokens,
        summary="Count Message Tokens",
        operation_id="count_message_tokens",
    ),
)


def _make_responses(ids: IdSource) -> Ingress:
    from tollgate.ingress.responses import Responses

    return Responses(ids)


def _load_responses_models() -> FormatModels:
    from tollgate.ingress.responses.wire.response_events import ResponseEvent, ResponseFailed
    from tollgate.ingress.responses.wire.response_reply import (
        ResponseInputTokens,
        ResponseObject,
        ResponsesErrorEnvelope,
    )
    from tollgate.ingress.responses.wire.response_request import ResponsesRequest

    return FormatModels(
        request=ResponsesRequest,
        reply=ResponseObject,
        event=ResponseEvent,
        failure=ResponseFailed,
        error=ResponsesErrorEnvelope,
        count_request=ResponsesRequest,
        count_reply=ResponseInputTokens,
    )


def _parse_response_count(body: bytes, headers: Mapping[str, str]) -> GenerationRequest:
    from tollgate.ingress.responses.parse import parse_response_request

    return parse_response_request(body, headers).request


RESPONSES: Final = IngressFormat(
    name="responses",
    path="/v1/responses",
    make=_make_responses,
    load_models=_load_responses_models,
    tag="responses",
    summary="Create Response",
    description="Generate an answer in OpenAI's Responses format, whole or streamed; it is billed "
    "to the key, and stored if the key or its workspace says so.",
    operation_id="create_response",
    counting=TokenCounting(
        path="/v1/responses/input_tokens",
        parse=_parse_response_count,
        render=lambda tokens: b'{"object":"response.input_tokens","input_tokens":%d}' % tokens,
        summary="Count Response Input Tokens",
        operation_id="count_response_input_tokens",
    ),
)


def _make_embeddings(ids: IdSource) -> Ingress:
    from tollgate.ingress.embeddings import Embeddings

    return Embeddings(ids)


def _load_embeddings_models() -> FormatModels:
    from tollgate.ingress.embeddings.wire.embedding_reply import EmbeddingsReply
    from tollgate.ingress.embeddings.wire.embedding_request import EmbeddingsRequest
    from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope

    return FormatModels(request=EmbeddingsRequest, reply=EmbeddingsReply, error=ErrorEnvelope)


EMBEDDINGS: Final = IngressFormat(
    name="embeddings",
    path="/v1/embeddings",
    make=_make_embeddings,
    load_models=_load_embeddings_models,
    tag="embeddings",
    summary="Create Embeddings",
    description="Turn texts or token ids into vectors, in OpenAI's format; billed to the key.",
    operation_id="create_embeddings",
)


def _make_rerank(ids: IdSource) -> Ingress:
    from tollgate.ingress.rerank import Rerank

    return Rerank(ids)


def _load_rerank_models() -> FormatModels:
    from tollgate.ingress.rerank.wire.rerank_reply import RerankReply
    from tollgate.ingress.rerank.wire.rerank_request import RerankBody
    from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope

    return FormatModels(request=RerankBody, reply=RerankReply, error=ErrorEnvelope)


RERANK: Final = IngressFormat(
    name="rerank",
    path="/v1/rerank",
    make=_make_rerank,
    load_models=_load_rerank_models,
    tag="rerank",
    summary="Rank Documents",
    description="Rank documents by their relevance to a query; billed to the key.",
    operation_id="rerank_documents",
    # ClientV2 of Cohere's SDK puts this behind its base URL (cohere 5.21.1, 2026-11-22), and with
    # it the rerankers of LangChain and LlamaIndex.
    alias=PathAlias(
        path="/v1/v2/rerank",
        summary="Rank Documents for Cohere's Clients",
        operation_id="rerank_documents_v2",
    ),
)


def _make_moderations(ids: IdSource) -> Ingress:
    from tollgate.ingress.moderations import Moderations

    return Moderations(ids)


def _load_moderations_models() -> FormatModels:
    from tollgate.ingress.moderations.wire.moderation_reply import ModerationReply
    from tollgate.ingress.moderations.wire.moderation_request import ModerationBody
    from tollgate.ingress.shared.wire.reply_models import ErrorEnvelope

    return FormatModels(request=ModerationBody, reply=ModerationReply, error=ErrorEnvelope)


MODERATIONS: Final = IngressFormat(
    name="moderations",
    path="/v1/moderations",
    make=_make_moderations,
    load_models=_load_moderations_models,
    tag="moderations",
    summary="Create Moderation",
    description="Judge texts by what they contain, in OpenAI's format; billed to the key.",
    operation_id="create_moderation",
)

FORMATS: Final = (
    CHAT_COMPLETIONS,
    COMPLETIONS,
    MESSAGES,
    RESPONSES,
    EMBEDDINGS,
    RERANK,
    MODERATIONS,
    IMAGE_GENERATIONS,
    IMAGE_EDITS,
    SPEECH,
    TRANSCRIPTIONS,
    TRANSLATIONS,
)


class Ingresses(dict[str, Ingress]):
    """The formats by name, each made when it is first needed."""

    def __init__(self, ids: IdSource) -> None:
        super().__init__()
        self._ids = ids

    def __missing__(self, name: str) -> Ingress:
        row = next(each for each in FORMATS if each.name == name)
        made = self[name] = row.make(self._ids)
        return made
