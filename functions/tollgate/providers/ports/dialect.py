"""The closed set of differences that a row, or one endpoint of it, may state about its format.

A difference that needs code belongs into a codec. An endpoint may depart from its row, since models
of one provider differ too: those that reason refuse a temperature, for example.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tollgate.core.request import Effort, InputType, Need
from tollgate.core.signers import CLAUDE, GEMINI
from tollgate.providers.ports.media_dialects import (
    ImagesDialect,
    Path,
    SpeechDialect,
    TranscriptionDialect,
)
from tollgate.providers.ports.parameters import REFUSED_BY_DEFAULT, Parameter

# The hosts of the Messages API: Anthropic, Vertex AI, or Bedrock's InvokeModel.
ClaudeCarrier = Literal["anthropic", "vertex", "bedrock"]

# From the least to the most.
EFFORTS: Final[tuple[Effort, ...]] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _sort_parameters(names: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """Return the names in one order, each once: a catalog is named by the hash of its content."""
    return tuple(sorted(set(names)))


def _sort_efforts(efforts: tuple[Effort, ...]) -> tuple[Effort, ...]:
    """Return the efforts from the least to the most, each once."""
    return tuple(effort for effort in EFFORTS if effort in efforts)


_InputTypeName = Annotated[str, StringConstraints(min_length=1, max_length=64)] | None


class InputTypeNames(BaseModel):
    """A server's names of the uses of vectors; without a name a use is not sent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    query: _InputTypeName = Field(default=None, description="Of what is searched with.")
    document: _InputTypeName = Field(default=None, description="Of what is searched.")
    classification: _InputTypeName = Field(default=None, description="For classifying.")
    clustering: _InputTypeName = Field(default=None, description="For grouping.")

    def name_of(self, use: InputType) -> str | None:
        """Return the server's name of a use, None if it knows no such use."""
        name: str | None = getattr(self, use)
        return name


# Families of models whose embeddings have bodies of their own behind one host.
EmbeddingFamily = Literal["cohere", "nova", "titan"]


class EmbeddingsDialect(BaseModel):
    """Departures of a server of embeddings from OpenAI's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    family: EmbeddingFamily = Field(
        default="titan", description="The family of models whose bodies the format bedrock writes."
    )
    path: Path | None = Field(
        default=None, description="The path of requests, in place of the format's own."
    )
    inputs_max: Annotated[int, Field(ge=1, le=2048)] = Field(
        default=2048, description="Inputs of one request; the gateway sends more in several."
    )
    base64: bool = Field(
        default=False, description="Whether `encoding_format` is taken; the gateway converts."
    )
    token_ids: bool = Field(default=False, description="Whether inputs may be token ids.")
    dimensions_field: Literal["dimensions", "output_dimension"] = Field(
        default="dimensions", description="The field with the size of vectors."
    )
    input_type_field: Literal["input_type", "task"] = Field(
        default="input_type", description="The field with the use of vectors."
    )
    input_types: InputTypeNames = Field(
        default_factory=InputTypeNames,
        description="The server's names of the uses that it knows.",
    )


class RerankDialect(BaseModel):
    """Departures of a reranker from Jina's."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = Field(
        default=None, description="The path of requests, in place of the format's own."
    )
    limit_field: Literal["top_n", "top_k"] = Field(
        default="top_n", description="The field with the number of documents to return."
    )
    by_tokens: bool = Field(
        default=False,
        description="Whether tokens are charged for even where an answer counts units of search; "
        "tokens that it does not count are estimated.",
    )


class GeminiDialect(BaseModel):
    """Departures of one Gemini model from the others."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thinking_tokens_min: int = Field(
        default=128, description="The smallest thinking budget, where thinking is set by tokens."
    )
    thinking_tokens_max: int = Field(
        default=24576, description="The largest thinking budget, where thinking is set by tokens."
    )
    signed_calls: bool = Field(
        default=False, description="Whether calls of the history must come back signed."
    )
    schema_beside_tools: bool = Field(
        default=False, description="Whether a request with tools may have a schema for the answer."
    )
    searches_billed_once: bool = Field(
        default=False, description="Whether all searches of an answer are billed as one."
    )


class ClaudeDialect(BaseModel):
    """Departures of one generation of Claude; the defaults fit the newest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    thinking_off: Literal["absent", "disabled", "between_tools", "never"] = Field(
        default="never",
        description="How thinking is declined: by leaving it out, by this word, or not at all.",
    )
    forced_calls_while_thinking: bool = Field(
        default=False, description="Whether a call may be forced of a model that thinks."
    )
    temperature_and_top_p: bool = Field(
        default=False, description="Whether both are taken in one request."
    )
    prefill: bool = Field(
        default=False, description="Whether a last assistant message is continued."
    )
    system_turns: bool = Field(
        default=False, description="Whether system messages may stand between others."
    )
    betas: tuple[str, ...] | None = Field(
        default=None,
        description="The beginnings of the names of features in preview that the host takes; "
        "absent, those that its host is known to take.",
    )


# `{model}` stands for the upstream name; Azure's has its API version in a query.

_ReasoningField = Literal[
    "reasoning", "reasoning_content", "reasoning_details", "think_tags", "thinking_parts"
]
_Reasoning = Literal[
    "effort",
    "object",
    "thinking",
    "claude_budget",
    "claude_adaptive",
    "nova",
    "gemini_budget",
    "gemini_level",
]
# The signers of families whose thinking is requested in a way of their own.
_FAMILIES: Final[Mapping[str, str]] = {
    "claude_budget": CLAUDE,
    "claude_adaptive": CLAUDE,
    "gemini_budget": GEMINI,
    "gemini_level": GEMINI,
}


def _sort_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the kinds in one order, each once."""
    return tuple(sorted(set(kinds)))


_FetchedKinds = Annotated[
    tuple[Literal["file", "image"], ...],
    AfterValidator(_sort_kinds),
]


class Dialect(BaseModel):
    """Departures of one server from its format; the defaults are the conservative choice."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: Path | None = Field(
        default=None, description="The path of requests, in place of the format's own."
    )
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="The field that limits the tokens of an answer."
    )
    seed_field: Literal["seed", "random_seed"] = Field(
        default="seed", description="The field of the seed: Mistral's is `random_seed`."
    )
    document_part: Literal["file", "document_url"] = Field(
        default="file",
        description="The kind of part that carries a document: Mistral's is `document_url`.",
    )
    developer_role: bool = Field(
        default=False, description="Whether the role `developer` is known; else it is `system`."
    )
    message_names: bool = Field(default=True, description="Whether messages may have a `name`.")
    any_tool: Literal["required", "any"] = Field(
        default="required", description="The tool choice that forces a call of any tool."
    )
    stream_usage: bool = Field(
        default=True, description="Whether `stream_options.include_usage` is taken."
    )
    refuses: Annotated[tuple[Parameter, ...], AfterValidator(_sort_parameters)] = Field(
        default=REFUSED_BY_DEFAULT,
        description="Parameters that are left out and reported in `x-tollgate-adapted`.",
    )
    reasoning_field: _ReasoningField | None = Field(
        default=None,
        description="Where earlier reasoning goes back on assistant turns: a field of this name, "
        "`<think>` tags in the text, or Mistral's content lists.",
    )
    reasoning: _Reasoning | None = Field(
        default=None,
        description="How thinking is requested: by `reasoning_effort` (effort), OpenRouter's "
        "object, DeepSeek's and Z.ai's switch (thinking), Claude's budget or adaptive effort, "
        "Nova's effort, Gemini's budget or level. Without it, thinking cannot be requested.",
    )
    reasoning_summaries: bool = Field(
        default=False,
        description="Whether summaries of thoughts may be requested, which OpenAI allows to "
        "verified organisations only.",
    )
    signer: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")] | None = Field(
        default=None,
        description="The signer of the model's reasoning, as OpenRouter names formats: only "
        "reasoning of this signer is sent back. Without it, the one of the format.",
    )
    efforts: Annotated[tuple[Effort, ...], AfterValidator(_sort_efforts)] = Field(
        default=("low", "medium", "high"),
        description="The efforts that the model knows; `none` if thinking can be turned off.",
    )
    output_format: Literal["json_schema", "json_object"] | None = Field(
        default="json_schema",
        description="The strictest form of an answer that the server enforces; the gateway "
        "emulates the rest.",
    )
    guided: bool = Field(
        default=False, description="Whether vLLM's own fields (guided decoding) are taken."
    )
    suffixes: bool = Field(
        default=False,
        description="Whether `suffix` is taken, for models of the format openai_completions that "
        "fill a gap.",
    )
    echoes: bool = Field(
        default=False,
        description="Whether `echo` is taken beside `logprobs`, for servers of the format "
        "openai_completions that know the log probabilities of a prompt.",
    )
    native_choices: bool = Field(
        default=False, description="Whether `n` is taken; else the gateway asks once for each."
    )
    fetches_urls: _FetchedKinds = Field(
        default=(), description="Media that are taken by URL; the gateway fetches the rest."
    )
    cache_marks: bool = Field(
        default=False, description="Whether `cache_control` on parts is taken."
    )
    cached_tools: bool = Field(
        default=True, description="Whether `cache_control` on tools is taken as on parts."
    )
    failed_results: bool = Field(
        default=False,
        description="Whether a tool's result may have a status, in the format bedrock.",
    )
    text_tools: bool = Field(
        default=False,
        description="Whether tools of free text (`custom`) are taken, in the format "
        "openai_responses; the gateway emulates them elsewhere.",
    )
    counts_tokens: bool = Field(
        default=False,
        description="Whether the server counts the tokens of a prompt without generating, at the "
        "path that its format has for that; else a count is an estimate.",
    )
    native_search: bool = Field(
        default=False,
        description="Whether the provider searches the web by itself, with the tool that its "
        "format has for that; used where `server_tools.web_search` has `native`, at endpoints with "
        "a `price.web_search`.",
    )
    tool_call_id_length: int | None = Field(
        default=None, description="The only length of ids of calls, in letters and digits."
    )
    embeddings: EmbeddingsDialect = Field(
        default_factory=EmbeddingsDialect,
        description="For models of the kind embedding.",
    )
    rerank: RerankDialect = Field(
        default_factory=RerankDialect, description="For models of the kind rerank."
    )
    images: ImagesDialect = Field(
        default_factory=ImagesDialect, description="For models of the kind image."
    )
    speech: SpeechDialect = Field(
        default_factory=SpeechDialect, description="For models of the kind speech."
    )
    transcription: TranscriptionDialect = Field(
        default_factory=TranscriptionDialect,
        description="For models of the kind transcription.",
    )
    gemini: GeminiDialect = Field(
        default_factory=GeminiDialect,
        description="For models of the format gemini.",
    )
    claude: ClaudeDialect = Field(
        default_factory=ClaudeDialect, description="For Claude, on any format."
    )
    claude_carrier: ClaudeCarrier = Field(
        default="anthropic", description="The host of the format anthropic."
    )

    @property
    def known_signer(self) -> str | None:
        """The signer that is stated, or that of the family whose way of thinking is stated."""
        return self.signer or _FAMILIES.get(self.reasoning or "")

    @property
    def met(self) -> frozenset[Need]:
        """The needs of a request that the server states to meet, if its format can carry them."""
        stated: tuple[tuple[Need, bool], ...] = (
            ("echo", self.echoes),
            ("suffix", self.suffixes),
            ("token_ids", self.embeddings.token_ids),
        )
        return frozenset(need for need, is_met in stated if is_met)
