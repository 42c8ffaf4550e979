"""What a caller asks for, in no client's and no provider's words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from tollgate.core.content import Reasoning, Refusal, Text, ToolCall

JsonObject = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMessage:
    """Instructions of the operator; `developer` is OpenAI's newer name for the role."""

    content: tuple[Text, ...]
    role: Literal["system", "developer"] = "system"
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    """What the user said."""

    content: tuple[Text, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """What a model said earlier, the calls it asked for included."""

    content: tuple[Text | Reasoning | Refusal | ToolCall, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The result of one call."""

    call_id: str
    content: tuple[Text, ...]


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the model may ask the caller to run."""

    name: str
    description: str | None = None
    parameters: JsonObject = field(default_factory=dict)
    strict: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """Whether tools may, must or must not be called; `name` belongs to mode `named`."""

    mode: Literal["auto", "none", "required", "named"]
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn; None leaves it to the provider."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    logit_bias: Mapping[str, float] = field(default_factory=dict)


Capability = Literal["tools", "structured_output", "reasoning", "prompt_cache"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One generation: the model asked for by name, the conversation, and its limits.

    `output_tokens_max` is the caller's own limit; None when there is none.
    `size_bytes` is the length of the request as received, from which tokens are estimated.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    output_tokens_max: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    user: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    size_bytes: int = 0

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What a model must be able to do to serve this."""
        return frozenset({"tools"}) if self.tools else frozenset()
