"""The paths of Gemini's models on AI Studio and Vertex AI, and the fields that are read in answers.

The shapes are from the discovery document of aiplatform v1, revision 20261106. Gemini leaves
out zero counts and empty lists. A chunk of a stream has the same shape as a whole reply.
"""

from typing import Annotated, Final, Literal
from urllib.parse import quote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel
from pydantic_core import ValidationError

from tollgate.core.json_value import JsonValue
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.refusals import malformed_error

# The reasons by number, for replies with numbers (`$alt=json;enum-encoding=int`).
_FINISH_REASONS: Final = (
    "FINISH_REASON_UNSPECIFIED",
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
)


def _named(reason: object) -> object:
    """Return the name of a finish reason, which may have arrived as a number."""
    if isinstance(reason, int) and 0 <= reason < len(_FINISH_REASONS):
        return _FINISH_REASONS[reason]
    return str(reason) if isinstance(reason, int) else reason


FinishReason = Annotated[str, BeforeValidator(_named)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class PartialArg(_Shape):
    """A piece of one argument; only texts are split into pieces."""

    path: str = Field(default="", alias="jsonPath")
    string: str | None = Field(default=None, alias="stringValue")
    number: int | float | None = Field(default=None, alias="numberValue")
    boolean: bool | None = Field(default=None, alias="boolValue")
    null: Literal["NULL_VALUE"] | None = Field(default=None, alias="nullValue")


class FunctionCall(_Shape):
    """A call, or a piece of a call; only the first piece has the name."""

    id: str | None = None
    name: str | None = None
    args: dict[str, JsonValue] | None = None
    partial_args: list[PartialArg] = Field(default=[], alias="partialArgs")
    will_continue: bool = Field(default=False, alias="willContinue")


class Blob(_Shape):
    """Binary content, such as an image."""

    media_type: str = Field(default="", alias="mimeType")
    base64: str = Field(default="", alias="data")


class Part(BaseModel):
    """A piece of the answer; `model_extra` has content other than text, calls and bytes."""

    model_config = ConfigDict(extra="allow", frozen=True)

    text: str | None = None
    thought: bool = False
    signature: str | None = Field(default=None, alias="thoughtSignature")
    call: FunctionCall | None = Field(default=None, alias="functionCall")
    blob: Blob | None = Field(default=None, alias="inlineData")


class Content(_Shape):
    parts: list[Part] = Field(default=[])


class Web(_Shape):
    uri: str | None = None
    title: str | None = None


class GroundingChunk(_Shape):
    """A source; the field that is set tells the kind of source."""

    web: Web | None = None
    maps: Web | None = None
    retrieved: Web | None = Field(default=None, alias="retrievedContext")


class Segment(_Shape):
    """A passage of the answer, with offsets in UTF-8 bytes."""

    start: int = Field(default=0, alias="startIndex")
    end: int | None = Field(default=None, alias="endIndex")


class GroundingSupport(_Shape):
    """A passage of the answer, and the indexes of the sources that support the passage."""

    segment: Segment = Segment()
    chunks: list[int] = Field(default=[], alias="groundingChunkIndices")


class Grounding(_Shape):
    """The search queries and the sources of an answer."""

    queries: list[str] = Field(default=[], alias="webSearchQueries")
    chunks: list[GroundingChunk] = Field(default=[], alias="groundingChunks")
    supports: list[GroundingSupport] = Field(default=[], alias="groundingSupports")


class CitedSource(Segment):
    """A source that the answer quotes."""

    uri: str | None = None
    title: str | None = None


class Citations(_Shape):
    """The sources that the answer quotes; AI Studio and Vertex name the list differently."""

    citations: list[CitedSource] = Field(default=[])
    sources: list[CitedSource] = Field(default=[], alias="citationSources")


class TokenLogProb(_Shape):
    """A token and its log probability; an empty token or a probability of 1 may be missing."""

    token: str = ""
    log_probability: float = Field(default=0.0, alias="logProbability")


class TopCandidates(_Shape):
    candidates: list[TokenLogProb] = Field(default=[])


class LogProbsResult(_Shape):
    """The tokens of a chunk, and the most likely tokens at each position."""

    chosen: list[TokenLogProb] = Field(default=[], alias="chosenCandidates")
    top: list[TopCandidates] = Field(default=[], alias="topCandidates")


class Candidate(_Shape):
    """One of the alternative answers."""

    index: int = 0
    content: Content = Content()
    finish_reason: FinishReason | None = Field(default=None, alias="finishReason")
    grounding: Grounding | None = Field(default=None, alias="groundingMetadata")
    citations: Citations | None = Field(default=None, alias="citationMetadata")
    log_probs: LogProbsResult | None = Field(default=None, alias="logprobsResult")


class PromptFeedback(_Shape):
    """The reason why a prompt was not answered at all."""

    block_reason: str | None = Field(default=None, alias="blockReason")
    message: str | None = Field(default=None, alias="blockReasonMessage")


class Chunk(_Shape):
    """One event of a stream, or a whole reply."""

    candidates: list[Candidate] | None = None
    feedback: PromptFeedback | None = Field(default=None, alias="promptFeedback")
    usage: dict[str, JsonValue] | None = Field(default=None, alias="usageMetadata")
    id: str | None = Field(default=None, alias="responseId")
    model: str | None = Field(default=None, alias="modelVersion")
    error: JsonValue = None


def read_chunk(data: bytes, provider: str) -> Chunk:
    """Parse one event or a whole reply; raise UpstreamError for unreadable data."""
    try:
        return Chunk.model_validate_json(data)
    except ValidationError as invalid:
        raise malformed_error(provider, "a frame that cannot be read") from invalid


class Chunks(RootModel[list[Chunk]]):
    """A stream that arrives as one JSON array."""


class ErrorCause(_Shape):
    """A detail of an error: a reason, or the time to wait before a retry (`34.4s`)."""

    reason: str | None = None
    retry_delay: str | None = Field(default=None, alias="retryDelay")


class ErrorDetail(_Shape):
    """A google.rpc.Status as JSON."""

    code: int | None = None
    message: str | None = None
    status: str | None = None
    details: list[ErrorCause] = Field(default=[])


class ErrorBody(_Shape):
    error: ErrorDetail


class ErrorBodies(RootModel[ErrorBody | list[ErrorBody]]):
    """The body of an error reply; on streaming paths Gemini sends a list with one error."""


def model_path(target: Target) -> str:
    """Return the path of a model, without the method, which the caller appends."""
    model = quote(target.upstream_model, safe="")
    owner = "/v1beta"
    if target.project is not None and target.location is not None:
        project, location = quote(target.project, safe=""), quote(target.location, safe="")
        owner = f"/v1/projects/{project}/locations/{location}/publishers/google"
    return f"{owner}/models/{model}"
