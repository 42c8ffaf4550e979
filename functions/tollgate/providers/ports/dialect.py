"""Dialects: the differences between a server and its format, as stated in routing.yaml.

A difference that needs code belongs in a codec. An endpoint may override its provider's dialect,
because models differ: reasoning models refuse a temperature, for example.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints

from tollgate.core.request import Effort, Need
from tollgate.core.signers import CLAUDE, GEMINI
from tollgate.providers.ports.parameters import REFUSED_BY_DEFAULT, Parameter
from tollgate.providers.ports.work_dialects import (
    DialectSection,
    RequestPath,
    WorkDialects,
    sort_names,
)

# The hosts of the Messages API: Anthropic, Vertex AI, or Bedrock's InvokeModel.
ClaudeCarrier = Literal["anthropic", "vertex", "bedrock"]

# The efforts, from the least to the most.
EFFORTS: Final[tuple[Effort, ...]] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _sort_efforts(efforts: tuple[Effort, ...]) -> tuple[Effort, ...]:
    """Return the distinct efforts, from the least to the most."""
    return tuple(effort for effort in EFFORTS if effort in efforts)


class GeminiDialect(DialectSection):
    """The ways in which a Gemini model differs from the others."""

    thinking_tokens_min: int = Field(
        default=128, description="The minimum thinking budget that the model accepts, in tokens."
    )
    thinking_tokens_max: int = Field(
        default=24576, description="The maximum thinking budget that the model accepts, in tokens."
    )
    signed_calls: bool = Field(
        default=False,
        description="Whether tool calls in earlier turns must have their signatures.",
    )
    schema_beside_tools: bool = Field(
        default=False, description="Whether a request may have both tools and an output schema."
    )
    searches_billed_once: bool = Field(
        default=False,
        description="Whether all searches in an answer are billed as a single search.",
    )


class ClaudeDialect(DialectSection):
    """The ways in which generations of Claude differ; the defaults fit the newest generation."""

    thinking_off: Literal["absent", "disabled", "between_tools", "never"] = Field(
        default="never",
        description="How a request turns thinking off: by omitting the field `thinking` "
        "(`absent`), with this type of `thinking`, or not at all (`never`).",
    )
    forced_calls_while_thinking: bool = Field(
        default=False, description="Whether a tool call may be forced while the model thinks."
    )
    temperature_and_top_p: bool = Field(
        default=False, description="Whether a request may have both `temperature` and `top_p`."
    )
    prefill: bool = Field(
        default=False, description="Whether the model continues the last assistant message."
    )
    system_turns: bool = Field(
        default=False, description="Whether system messages may appear between other messages."
    )
    betas: tuple[str, ...] | None = Field(
        default=None,
        description="The name prefixes of the preview features (`anthropic-beta`) that the host "
        "accepts. Defaults to the features that the host is known to accept.",
    )


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
# The signer of each model family, keyed by the family's setting for thinking.
_FAMILIES: Final[Mapping[str, str]] = {
    "claude_budget": CLAUDE,
    "claude_adaptive": CLAUDE,
    "gemini_budget": GEMINI,
    "gemini_level": GEMINI,
}


_FetchedKinds = Annotated[tuple[Literal["file", "image"], ...], AfterValidator(sort_names)]


class Dialect(WorkDialects):
    """The ways in which a server differs from its format; the defaults fit most servers."""

    path: RequestPath = None
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="The field that limits the tokens in an answer."
    )
    output_limit_default: Annotated[int, Field(ge=16)] | None = Field(
        default=None,
        description="Output limit in tokens to send if the request sets none. Set it if the "
        "provider would otherwise reserve quota for the model's maximum.",
    )
    seed_field: Literal["seed", "random_seed"] = Field(
        default="seed", description="Name of the seed field; Mistral uses `random_seed`."
    )
    document_part: Literal["file", "document_url"] = Field(
        default="file",
        description="The type of a document part; Mistral uses `document_url`.",
    )
    developer_role: bool = Field(
        default=False,
        description="Whether the server accepts the role `developer`; if not, `system` is sent.",
    )
    message_names: bool = Field(default=True, description="Whether messages may have a `name`.")
    any_tool: Literal["required", "any"] = Field(
        default="required", description="The tool choice that forces a call of any tool."
    )
    stream_usage: bool = Field(
        default=True, description="Whether the server accepts `stream_options.include_usage`."
    )
    refuses: Annotated[tuple[Parameter, ...], AfterValidator(sort_names)] = Field(
        default=REFUSED_BY_DEFAULT,
        description="Parameters that the server refuses; they are dropped and reported in "
        "`x-tollgate-adapted`.",
    )
    reasoning_field: _ReasoningField | None = Field(
        default=None,
        description="Where earlier reasoning goes in assistant messages: into the field with this "
        "name, into `<think>` tags in the text, or into Mistral's content lists.",
    )
    reasoning: _Reasoning | None = Field(
        default=None,
        description="How a request asks for thinking: with `reasoning_effort` (effort), "
        "OpenRouter's object, the switch of DeepSeek and Z.ai (thinking), Claude's budget or "
        "effort, Nova's effort, or Gemini's budget or level. If absent, requests never ask for "
        "thinking.",
    )
    reasoning_summaries: bool = Field(
        default=False,
        description="Whether a request may ask for summaries of reasoning, which OpenAI allows "
        "only to verified organisations.",
    )
    signer: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")] | None = Field(
        default=None,
        description="The signer of the model's reasoning, named as in OpenRouter's formats; only "
        "reasoning with this signer is sent back. Defaults to the format's signer.",
    )
    efforts: Annotated[tuple[Effort, ...], AfterValidator(_sort_efforts)] = Field(
        default=("low", "medium", "high"),
        description="The efforts that the model accepts; includes `none` if thinking can be "
        "turned off.",
    )
    output_format: Literal["json_schema", "json_object"] | None = Field(
        default="json_schema",
        description="The strictest output format that the server enforces; stricter ones are "
        "emulated by the gateway.",
    )
    guided: bool = Field(
        default=False,
        description="Whether the server accepts vLLM's own fields, such as guided decoding.",
    )
    suffixes: bool = Field(
        default=False,
        description="Whether the server accepts `suffix`, for models that fill a gap in a text, "
        "in the openai_completions format.",
    )
    echoes: bool = Field(
        default=False,
        description="Whether the server accepts `echo` together with `logprobs`, to return the log "
        "probabilities of a prompt, in the openai_completions format.",
    )
    unknown_fields: bool = Field(
        default=False,
        description="Whether fields that the gateway does not know are passed to the server and "
        "back, for clients of the same format (openai_chat or openai_responses). Many servers "
        "refuse such fields with 400; without this option, they are dropped and reported in "
        "`x-tollgate-adapted`.",
    )
    native_choices: bool = Field(
        default=False,
        description="Whether the server accepts `n`; if not, each choice is a separate request.",
    )
    fetches_urls: _FetchedKinds = Field(
        default=(),
        description="The media that the server fetches by URL; the gateway fetches all others.",
    )
    cache_marks: bool = Field(
        default=False, description="Whether the server accepts `cache_control` on parts."
    )
    cached_tools: bool = Field(
        default=True,
        description="Whether the server accepts cache marks on tools, not only on parts.",
    )
    failed_results: bool = Field(
        default=False,
        description="Whether a tool result may have a status, in the bedrock format.",
    )
    text_tools: bool = Field(
        default=False,
        description="Whether the server accepts free-text tools (`custom`), in the "
        "openai_responses format; otherwise, the gateway emulates them.",
    )
    compacts: bool = Field(
        default=False,
        description="Whether the server has `POST …/responses/compact`, in the openai_responses "
        "format. A conversation is compacted there if all endpoints of its route belong to this "
        "provider; otherwise, or without this option, the model writes a record that every model "
        "can read.",
    )
    counts_tokens: bool = Field(
        default=False,
        description="Whether the server has its format's endpoint for counting the tokens of a "
        "prompt; if not, the gateway estimates the count.",
    )
    native_search: bool = Field(
        default=False,
        description="Whether the provider searches the web itself, with its format's search tool. "
        "Used if `server_tools.web_search` has `native` and the endpoint has a "
        "`price.web_search`.",
    )
    tool_call_id_length: int | None = Field(
        default=None,
        description="The exact length of tool call ids, if the server requires ids of this many "
        "letters and digits.",
    )
    gemini: GeminiDialect = Field(
        default_factory=GeminiDialect, description="For models in the gemini format."
    )
    claude: ClaudeDialect = Field(
        default_factory=ClaudeDialect, description="For Claude, in any format."
    )
    claude_carrier: ClaudeCarrier = Field(
        default="anthropic", description="The host that serves the anthropic format."
    )

    @property
    def known_signer(self) -> str | None:
        """The dialect's signer; by default the signer of the model family, if known."""
        return self.signer or _FAMILIES.get(self.reasoning or "")

    @property
    def met(self) -> frozenset[Need]:
        """The needs of a request that the server satisfies if its format can express them."""
        needs: tuple[tuple[Need, bool], ...] = (
            ("echo", self.echoes),
            ("suffix", self.suffixes),
            ("token_ids", self.embeddings.token_ids),
        )
        return frozenset(need for need, is_met in needs if is_met)
