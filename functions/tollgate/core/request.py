"""A generation request, independent of client formats and providers."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import ClassVar, Final, Literal

from msgspec import Struct, field

from tollgate.core.compaction import Compaction
from tollgate.core.content import (
    Audio,
    CacheMark,
    Document,
    FileReference,
    Image,
    MadeImage,
    Reasoning,
    Refusal,
    ResultContent,
    Text,
    ToolCall,
    UserContent,
)
from tollgate.core.documents.known_files import KnownFile
from tollgate.core.documents.reading import DocumentOptions
from tollgate.core.json_value import JsonObject
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.server_tools import ServerTool
from tollgate.core.work.kinds import WorkKind


class SystemMessage(Struct, frozen=True, kw_only=True):
    """Instructions from the operator; `developer` is OpenAI's newer name for the role."""

    content: tuple[Text, ...]
    role: Literal["system", "developer"] = "system"
    name: str | None = None
    native: JsonObject | None = None
    """Unknown fields, for providers of the client's own format."""


class UserMessage(Struct, frozen=True, kw_only=True):
    """A message from the user: text and media."""

    content: tuple[UserContent, ...]
    name: str | None = None
    native: JsonObject | None = None
    """Unknown fields, for providers of the client's own format."""


AssistantContent = Text | Reasoning | Refusal | ToolCall | MadeImage


class AssistantMessage(Struct, frozen=True, kw_only=True):
    """An earlier answer of a model, with its tool calls."""

    content: tuple[AssistantContent, ...]
    name: str | None = None
    native: JsonObject | None = None
    """Unknown fields, for providers of the client's own format."""


class ToolMessage(Struct, frozen=True, kw_only=True):
    """The result of one tool call."""

    call_id: str
    content: tuple[ResultContent, ...]
    failed: bool = False
    """True if the caller reports that the tool failed."""
    native: JsonObject | None = None
    """Unknown fields, for providers of the client's own format."""


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage


class Grammar(Struct, frozen=True, kw_only=True):
    """The grammar that the free text of a call must follow."""

    syntax: Literal["lark", "regex"]
    definition: str


class TextInput(Struct, frozen=True, kw_only=True):
    """Free text as the input of a tool, instead of JSON. Without a grammar, any text is valid."""

    grammar: Grammar | None = None


class Tool(Struct, frozen=True, kw_only=True):
    """A function that the model may ask the caller to run."""

    name: str
    description: str | None = None
    parameters: JsonObject = field(default_factory=dict)
    text: TextInput | None = None
    """The free-text input of a tool without `parameters`; None for JSON arguments."""
    strict: bool | None = None
    cache: CacheMark | None = None
    native: JsonObject | None = None
    """Unknown fields, for providers of the client's own format."""


class ToolChoice(Struct, frozen=True, kw_only=True):
    """The caller's rule for tool calls. In mode `named`, `name` is the tool to call."""

    mode: Literal["auto", "none", "required", "named"]
    name: str | None = None


class Sampling(Struct, frozen=True, kw_only=True):
    """Sampling parameters; None leaves a parameter to the provider."""

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
    """The answer is JSON described by a schema; `strict` asks the provider to enforce it."""

    name: str
    schema: JsonObject
    description: str | None = None
    strict: bool | None = None


OutputFormat = JsonOutput | SchemaOutput

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ReasoningOptions(Struct, frozen=True, kw_only=True):
    """The amount of reasoning, by effort or in tokens, and its visibility."""

    effort: Effort | None = None
    tokens_max: int | None = None
    enabled: bool | None = None
    """True, without other options, requests the model's default amount of reasoning."""
    exclude: bool = False
    """True to omit the reasoning from the answer."""
    effort_alone: bool = False
    """True if `effort` applies to the whole answer; only `enabled` then controls reasoning."""
    display_open: bool = False
    """True to leave it to the model's default, if there is one, whether reasoning is shown."""


PRESET_PREFIX: Final = "preset/"
Modality = Literal["text", "image", "audio", "video", "pdf"]
_MODALITIES: Final[Mapping[type[Struct], Modality]] = {
    Image: "image",
    Audio: "audio",
    Document: "pdf",
}
Capability = Literal["tools", "structured_output", "reasoning", "prompt_cache"]
# What a vector is for; the vectors of some models depend on this.
InputType = Literal["query", "document", "classification", "clustering"]
# The kinds of content in an answer.
OutputModality = Literal["text", "image"]
# The values of `provider.sort`.
ProviderSort = Literal["price", "throughput", "latency"]
# Features that a request may need but that only some providers' formats support.
Need = Literal[
    "conversation",
    "echo",
    "image_output",
    "suffix",
    "token_ids",
    "mp3",
    "opus",
    "aac",
    "flac",
    "wav",
    "pcm",
    "segments",
    "words",
    "speakers",
    "translation",
]
# The needs of transcription requests.
TRANSCRIPT_NEEDS: Final[frozenset[Need]] = frozenset(
    {"segments", "words", "speakers", "translation"}
)
# `pcm` is headerless, one channel, with 24,000 little-endian samples of 16 bits per second.
# https://platform.openai.com/docs/guides/text-to-speech (2026-11-22)
SoundFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]


class PriceCeiling(Struct, frozen=True, kw_only=True):
    """The highest prices that a caller accepts, in dollars per million tokens and per request."""

    input: Decimal | None = None
    output: Decimal | None = None
    request: Decimal | None = None


class RoutingPreferences(Struct, frozen=True, kw_only=True):
    """The caller's preferences for the models and providers that serve a request."""

    models: tuple[str, ...] = ()
    """Models to try after the request's own `model`."""
    order: tuple[str, ...] = ()
    """Slugs of providers to try first, in this order."""
    only: tuple[str, ...] = ()
    """Slugs of the only providers that may be used."""
    ignore: tuple[str, ...] = ()
    """Slugs of providers that must not be used."""
    fallbacks: bool = True
    """False if only the first endpoint, or only the providers in `order`, may serve."""
    require_parameters: bool = False
    """True excludes endpoints that do not support every parameter of the request."""
    sort: ProviderSort | None = None
    price_max: PriceCeiling | None = None
    session_id: str | None = None
    """Requests with the same session id get the same weighted draw."""
    prompt_policy: PromptPolicy | None = None


class NativeOptions(Struct, frozen=True, kw_only=True):
    """Options for providers of one wire format, which are passed on unchanged."""

    wire_format: str
    """The name of the format in the provider table."""
    fields: JsonObject = field(default_factory=dict)
    """Body fields, under the names that the format uses."""
    betas: tuple[str, ...] = ()
    """The names of preview features that the caller enabled."""
    tools: tuple[JsonObject, ...] = ()
    """Tools of types that only the provider defines, in the order of the request."""
    tool_fields: Mapping[str, JsonObject] = field(default_factory=dict)
    """Additional fields of the caller's tools, keyed by the name of the tool."""
    unknown: JsonObject = field(default_factory=dict)
    """Body fields that the gateway does not know, in the form of `core.unknown_fields`."""
    within: Mapping[str, JsonObject] = field(default_factory=dict)
    """Unknown fields of objects in the body, by the object's path; sent only with the object."""
    unknown_names: tuple[str, ...] = ()
    """The names of all unknown fields, including those of messages and parts, for the record."""


class GenerationRequest(Struct, frozen=True, kw_only=True):
    """One generation: the requested model, the conversation, and its limits."""

    kind: ClassVar[WorkKind] = "chat"

    model: str
    preset: str | None = None
    """The slug of the preset that completes the request."""
    preset_variables: Mapping[str, str | int] = field(default_factory=dict)
    messages: tuple[Message, ...]
    further: tuple[tuple[Message, ...], ...] = ()
    """Further conversations, each answered with the same number of choices as `messages`."""
    suffix: str | None = None
    """The text after the answer, which fills the gap between the prompt and this suffix."""
    echo: bool = False
    """True if the provider repeats the prompt, with its log probabilities, before the answer."""
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    output_tokens_max: int | None = None
    """The caller's limit on output tokens; None if there is no limit."""
    sampling: Sampling = field(default_factory=Sampling)
    output_format: OutputFormat | None = None
    reasoning: ReasoningOptions | None = None
    choices: int = 1
    """The number of answers to each conversation."""
    server_tools: tuple[ServerTool, ...] = ()
    """The tools that the gateway runs, each at most once."""
    documents: DocumentOptions | None = None
    """The caller's options for reading documents; None if there are none."""
    known_files: tuple[KnownFile, ...] = ()
    """Documents that the gateway has read for earlier answers and need not read again."""
    guided: JsonObject = field(default_factory=dict)
    """Fields for servers like vLLM (guided decoding, chat templates), passed on unchanged."""
    native: NativeOptions | None = None
    compaction: Compaction | None = None
    output: frozenset[OutputModality] = frozenset({"text"})
    """The kinds of content that the caller wants in the answer."""
    prompt_cache_key: str | None = None
    service_tier: str | None = None
    user: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    preferences: RoutingPreferences = field(default_factory=RoutingPreferences)
    size_bytes: int = 0
    """The length of the body as received, used to estimate the number of input tokens."""

    @property
    def wants_single_call(self) -> bool:
        """True if the caller wants at most one tool call per choice."""
        return self.parallel_tool_calls is False

    @property
    def conversations(self) -> tuple[tuple[Message, ...], ...]:
        """Every conversation of the request, in order."""
        return (self.messages, *self.further)

    @property
    def answers(self) -> int:
        """The total number of answers; they are numbered conversation by conversation."""
        return self.choices * (1 + len(self.further))

    @property
    def names_files(self) -> bool:
        """True if a part refers to an uploaded file by its id."""
        return any(
            isinstance(part, Image | Document) and isinstance(part.source, FileReference)
            for part in self._parts
        )

    @property
    def has_documents(self) -> bool:
        """True if a part is a document."""
        return any(isinstance(part, Document) for part in self._parts)

    @property
    def leaves_documents(self) -> bool:
        """True if the caller wants only models that read documents themselves."""
        return self.documents is not None and self.documents.engine == "native"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities that a model needs to serve the request."""
        wanted: set[Capability] = set()
        required = any(tool.left_out_as is None for tool in self.server_tools)
        if self.tools or required or (self.native and self.native.tools):
            wanted.add("tools")
        if isinstance(self.output_format, SchemaOutput):
            wanted.add("structured_output")
        return frozenset(wanted)

    @property
    def prompts(self) -> tuple[str, ...]:
        """The text of each conversation."""
        return tuple(
            "".join(
                part.text
                for message in messages
                for part in message.content
                if isinstance(part, Text)
            )
            for messages in self.conversations
        )

    @property
    def own_texts(self) -> tuple[str, ...]:
        """The texts of the first conversation, one for each part."""
        return tuple(
            part.text
            for message in self.messages
            for part in message.content
            if isinstance(part, Text | Reasoning | Refusal)
        )

    @property
    def needs(self) -> frozenset[Need]:
        """The features that a provider's format must support to serve the request."""
        wanted: set[Need] = set()
        is_plain = all(map(_is_one_text, self.conversations))
        if self.tools or self.server_tools or self.output_format or not is_plain:
            wanted.add("conversation")
        if self.echo:
            wanted.add("echo")
        if self.suffix is not None:
            wanted.add("suffix")
        if "image" in self.output:
            wanted.add("image_output")
        return frozenset(wanted)

    @property
    def modalities(self) -> frozenset[Modality]:
        """The kinds of input that a model must accept to serve the request."""
        kinds = (_MODALITIES.get(type(part)) for part in self._parts)
        return frozenset({"text", *(kind for kind in kinds if kind is not None)})

    @property
    def _parts(self) -> Iterator[UserContent | AssistantContent]:
        """The parts of all messages."""
        for message in chain.from_iterable(self.conversations):
            yield from message.content


def _is_one_text(messages: tuple[Message, ...]) -> bool:
    if len(messages) != 1 or not isinstance(messages[0], UserMessage):
        return False
    return all(isinstance(part, Text) for part in messages[0].content)
