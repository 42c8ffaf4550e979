"""The client formats that are served, one row for each.

The wiring makes them, `web/chat_app.py` gives each its route, `web/openapi.py` describes it: a new
format is its folder and a row here (and the path's method in infra/template.yaml).
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from pydantic import BaseModel

from tollgate.core.ids import IdSource
from tollgate.ingress.base import Ingress
from tollgate.ingress.chat_completions import ChatCompletions
from tollgate.ingress.completions import Completions


class FormatModels(Struct, frozen=True, kw_only=True):
    """The models that the OpenAPI document shows of a format."""

    request: type[BaseModel]
    reply: type[BaseModel]
    """The body of a reply that is not streamed."""
    event: type[BaseModel]
    """The data of one server-sent event."""
    failure: type[BaseModel]
    """The data of the event that ends a broken stream."""
    error: type[BaseModel]


class IngressFormat(Struct, frozen=True, kw_only=True):
    """One client format: its route, its code and its description."""

    name: str
    """As records of generations write it."""
    path: str
    """Of the metered route, as `canonical_path` spells it."""
    make: Callable[[IdSource], Ingress]
    load_models: Callable[[], FormatModels]
    """A function, for the streaming function starts without these models."""
    tag: str
    summary: str
    description: str
    operation_id: str


def _load_chat_completions_models() -> FormatModels:
    from tollgate.ingress.chat_completions.wire.request import ChatRequest
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
    make=ChatCompletions,
    load_models=_load_chat_completions_models,
    tag="chat",
    summary="Create Chat Completion",
    description="Generate an answer, whole or streamed; it is billed to the key.",
    operation_id="create_chat_completion",
)

COMPLETIONS: Final = IngressFormat(
    name="completions",
    path="/v1/completions",
    make=Completions,
    load_models=_load_completions_models,
    tag="completions",
    summary="Create Completion",
    description="Complete one prompt or several in OpenAI's legacy format; billed to the key.",
    operation_id="create_completion",
)

FORMATS: Final = (CHAT_COMPLETIONS, COMPLETIONS)
