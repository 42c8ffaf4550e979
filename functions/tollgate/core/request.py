"""What a caller asks for, in no client's and no provider's words."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from msgspec import Struct, field
from pydantic import JsonValue

from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    Image,
    Reasoning,
    Refusal,
    ResultContent,
    Text,
    ToolCall,
    UserContent,
)

JsonObject = Mapping[str, JsonValue]


class SystemMessage(Struct, frozen=True, kw_only=True):
    """Instructions of the operator; `developer` is OpenAI's newer name for the role."""

    content: tuple[Text, ...]
    role: Literal["system", "developer"] = "system"
    name: str | None = None


class UserMessage(Struct, frozen=True, kw_only=True):
    """What the user said and showed."""

    content: tuple[UserContent, ...]
    name: str | None = None


class AssistantMessage(Struct, frozen=True, kw_only=True):
    """What a model said earlier, the calls it asked for included."""

    content: tuple[Text | Reasoning | Refusal | ToolCall, ...]
    name: str | None = None


class ToolMessage(Struct, frozen=True, kw_only=True):
    """The result of one call."""

    call_id: str
    content: tuple[ResultContent, ...]


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class Tool(Struct, frozen=True, kw_only=True):
    """A function that the model may ask the caller to run."""

    name: str
    description: str | None = None
    parameters: JsonObject = field(default_factory=dict)
    strict: bool | None = None
    cache: CacheMark | None = None


class ToolChoice(Struct, frozen=True, kw_only=True):
    """Whether tools may, must or must not be called; `name` belongs to mode `named`."""

    mode: Literal["auto", "none", "required", "named"]
    name: str | None = None


class Sampling(Struct, frozen=True, kw_only=True):
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
    logprobs: bool | None = None
    top_logprobs: int | None = None


class JsonOutput(Struct, frozen=True, kw_only=True):
    """The answer is a JSON object of any shape."""


class SchemaOutput(Struct, frozen=True, kw_only=True):
    """The answer is JSON that a schema describes; `strict` asks the provider to enforce it."""

    name: str
    schema: JsonObject
    description: str | None = None
    strict: bool | None = None


OutputFormat = JsonOutput | SchemaOutput

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ReasoningOptions(Struct, frozen=True, kw_only=True):
    """How much a model may think, by effort or by tokens, and whether its thoughts are shown.

    `enabled` alone asks for the model's own default.
    """

    effort: Effort | None = None
    tokens_max: int | None = None
    enabled: bool | None = None
    exclude: bool = False


Modality = Literal["text", "image", "audio", "video", "pdf"]
Capability = Literal["tools", "structured_output", "reasoning", "prompt_cache"]


class PriceCeiling(Struct, frozen=True, kw_only=True):
    """The most a caller will pay: dollars per million tokens, and per request."""

    input: Decimal | None = None
    output: Decimal | None = None
    request: Decimal | None = None


class RoutingPreferences(Struct, frozen=True, kw_only=True):
    """What a caller says about who should serve.

    `models` are names to try after the request's own. `order`, `only` and `ignore` are slugs of
    providers; `fallbacks` is False where the first endpoint is to be the only one.
    `require_parameters` leaves out who cannot take every parameter. Requests of one `session_id`
    are drawn alike.
    """

    models: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fallbacks: bool = True
    require_parameters: bool = False
    sort: Literal["price"] | None = None
    price_max: PriceCeiling | None = None
    session_id: str | None = None


class GenerationRequest(Struct, frozen=True, kw_only=True):
    """One generation: the model asked for by name, the conversation, and its limits.

    `output_tokens_max` is the caller's own limit; None when there is none. `choices` is how many
    answers are wanted. `guided` are the fields that only vLLM-type servers understand (guided
    decoding, chat templates), by their own names and untouched.
    `size_bytes` is the length of the request as received, from which tokens are estimated.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    output_tokens_max: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    output_format: OutputFormat | None = None
    reasoning: ReasoningOptions | None = None
    choices: int = 1
    guided: JsonObject = field(default_factory=dict)
    prompt_cache_key: str | None = None
    service_tier: str | None = None
    user: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    preferences: RoutingPreferences = field(default_factory=RoutingPreferences)
    size_bytes: int = 0

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What a model must be able to do to serve this."""
        wanted: set[Capability] = set()
        if self.tools:
            wanted.add("tools")
        if isinstance(self.output_format, SchemaOutput):
            wanted.add("structured_output")
        return frozenset(wanted)

    @property
    def modalities(self) -> frozenset[Modality]:
        """What a model must be able to take in."""
        wanted: set[Modality] = {"text"}
        for message in self.messages:
            for part in message.content:
                match part:
                    case Image():
                        wanted.add("image")
                    case Audio():
                        wanted.add("audio")
                    case Document():
                        wanted.add("pdf")
                    case _:
                        pass
        return frozenset(wanted)
