"""Inference servers that people run on their own machine, and their lists of models.

Each list has a property that identifies the program, so another program on the same port, such as a
second gateway, is never mistaken for the server.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Literal

from msgspec import Raw, Struct, json

from tollgate.core.request import Capability, Modality
from tollgate.providers.ports.dialect import Dialect
from tollgate.routing.model_names import LOCAL_AUTHOR

_UNKNOWN_CONTEXT: Final = 131_072


class FoundModel(Struct, frozen=True, kw_only=True):
    """A model as its server describes it.

    The defaults state no limits, so the server itself decides about each request.
    """

    id: str
    context: int | None = None
    supports: tuple[Capability, ...] = ("structured_output", "tools")
    input: tuple[Modality, ...] = ("text", "image")

    @property
    def tokens_max(self) -> int:
        """Maximum number of tokens of a prompt and its reply."""
        return self.context or _UNKNOWN_CONTEXT


# Returns the body of the reply to a GET, or to a POST if there is a body; raises HttpError.
Ask = Callable[[str, Mapping[str, str] | None], Awaitable[bytes]]


class LocalServer(Struct, frozen=True, kw_only=True):
    """A program that serves models on its usual port."""

    slug: str
    name: str
    port: int
    list_models: Callable[[Ask], Awaitable[Sequence[FoundModel]]]
    """Returns the chat models; raises MsgspecError for the reply of another program."""
    dialect: Dialect

    @property
    def row(self) -> str:
        """Slug of the provider in the catalog."""
        return f"{LOCAL_AUTHOR}-{self.slug}"


class _OllamaModel(Struct):
    model: str


class _OllamaModels(Struct):
    models: list[_OllamaModel]


class _OllamaDetails(Struct):
    model_info: dict[str, object]
    # Older versions do not report a model's capabilities.
    capabilities: tuple[str, ...] = ("completion", "tools", "vision")
    remote_host: str = ""

    def describe(self, id_: str) -> FoundModel | None:
        """Return the model; None for embeddings and for a model of Ollama's cloud, which is not
        free and to which prompts would be sent.
        """
        if "completion" not in self.capabilities or self.remote_host:
            return None
        contexts = (size for key, size in self.model_info.items() if key.endswith("context_length"))
        supports: tuple[Capability, ...] = ("structured_output",)
        if "tools" in self.capabilities:
            supports += ("tools",)
        if "thinking" in self.capabilities:
            supports += ("reasoning",)
        return FoundModel(
            id=id_,
            context=next((size for size in contexts if isinstance(size, int)), None),
            supports=supports,
            input=("text", "image") if "vision" in self.capabilities else ("text",),
        )


async def _list_ollama(ask: Ask) -> list[FoundModel]:
    listed = json.decode(await ask("/api/tags", None), type=_OllamaModels)
    ids = [each.model for each in listed.models]
    replies = await asyncio.gather(*(ask("/api/show", {"model": id_}) for id_ in ids))
    described = (
        json.decode(reply, type=_OllamaDetails).describe(id_)
        for id_, reply in zip(ids, replies, strict=True)
    )
    return [model for model in described if model is not None]


class _LmStudioEntry(Struct):
    id: str
    type: Literal["llm", "vlm", "embeddings"]
    max_context_length: int | None = None

    def describe(self) -> FoundModel | None:
        """Return the model; None for embeddings."""
        if self.type == "embeddings":
            return None
        seen: tuple[Modality, ...] = ("text", "image") if self.type == "vlm" else ("text",)
        return FoundModel(id=self.id, context=self.max_context_length, input=seen)


class _LlamaCppSizes(Struct):
    n_ctx: int | None = None
    n_ctx_train: int | None = None


class _LlamaCppEntry(Struct):
    id: str
    owned_by: Literal["llamacpp"]
    meta: _LlamaCppSizes | None = None

    def describe(self) -> FoundModel | None:
        """Return the model, with the context size for which it is loaded."""
        sizes = self.meta or _LlamaCppSizes()
        return FoundModel(id=self.id, context=sizes.n_ctx or sizes.n_ctx_train)


class _VllmEntry(Struct):
    id: str
    owned_by: Literal["vllm"]
    max_model_len: int | None = None

    def describe(self) -> FoundModel | None:
        """Return the model."""
        return FoundModel(id=self.id, context=self.max_model_len)


class _Entries(Struct):
    data: list[Raw]


async def _list_entries(
    path: str, entry: type[_LmStudioEntry | _LlamaCppEntry | _VllmEntry], ask: Ask
) -> list[FoundModel]:
    listed = json.decode(await ask(path, None), type=_Entries)
    described = [json.decode(each, type=entry).describe() for each in listed.data]
    return [model for model in described if model is not None]


# The ports are the defaults of the programs. The dialects are the same as in
# docs/examples/self-hosted.yaml; a test compares them.
SERVERS: Final = (
    LocalServer(  # docs.ollama.com/api, `/api/tags` and `/api/show` (2026-11-27)
        slug="ollama",
        name="Ollama",
        port=11434,
        list_models=_list_ollama,
        dialect=Dialect(reasoning="effort"),
    ),
    LocalServer(  # lmstudio.ai/docs/developer/rest/endpoints (2026-11-27)
        slug="lmstudio",
        name="LM Studio",
        port=1234,
        list_models=partial(_list_entries, "/api/v0/models", _LmStudioEntry),
        dialect=Dialect(),
    ),
    LocalServer(  # github.com/ggml-org/llama.cpp, tools/server/README.md (2026-11-27)
        slug="llamacpp",
        name="llama.cpp",
        port=8080,
        list_models=partial(_list_entries, "/v1/models", _LlamaCppEntry),
        dialect=Dialect(),
    ),
    LocalServer(  # docs.vllm.ai, "OpenAI-Compatible Server" (2026-11-27)
        slug="vllm",
        name="vLLM",
        port=8000,
        list_models=partial(_list_entries, "/v1/models", _VllmEntry),
        dialect=Dialect(
            refuses=(), guided=True, native_choices=True, reasoning_field="reasoning_content"
        ),
    ),
)
