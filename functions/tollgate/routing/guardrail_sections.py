"""Section `guardrails` in routing.yaml: rules that judge the texts of conversations."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, TypeAdapter, model_validator

from tollgate.routing.scalars import Id, ModelSlug, Name, RunSeconds, Slug, Strict

# Texts of a conversation that a guardrail can judge.
JudgedStage = Literal["input", "output", "tool_arguments", "tool_results"]
Finding = Literal["card_number", "email", "iban", "secret"]

_Word = Annotated[str, StringConstraints(pattern=r"^[a-z]+$", max_length=32)]
_Entity = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]{0,31}$")]


class PatternsSection(Strict):
    """Patterns that the gateway finds itself, without a model."""

    finds: Annotated[tuple[Finding, ...], Field(min_length=1, max_length=8)]
    """Kinds to find: card numbers and IBANs with a valid checksum, e-mail addresses, and secrets
    with a known prefix.
    """
    base64: bool = False
    """True to search base64-encoded text as well."""
    restores: bool = False
    """True if callers get the original in place of each mask in the answer to a masked request."""


class PresidioSection(Strict):
    """Analyzer of Microsoft Presidio, which finds personal information."""

    model: ModelSlug
    """Slug of a model of kind moderation whose providers all have codec presidio. `upstream` of its
    endpoints is the language of the texts, such as `en`."""
    entities: Annotated[tuple[_Entity, ...], Field(max_length=128)] = ()
    """Types to find, such as PERSON; default: all types that the analyzer knows."""
    score_min: Annotated[float, Field(ge=0, le=1)] | None = None
    """Lowest score of a finding; default: as the analyzer is set."""
    restores: bool = False
    """True if callers get the original in place of each mask in the answer to a masked request."""


class ModerationSection(Strict):
    """Model of kind moderation, such as OpenAI's or a guardrail of Amazon Bedrock."""

    model: ModelSlug
    """Slug of a model of kind moderation."""


class JudgeSection(Strict):
    """Chat model that answers with a verdict, such as Llama Guard."""

    model: ModelSlug
    """Slug of a model of kind chat."""
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=20_000)] | None = None
    """System prompt. Without one, the model gets only the text, as models made for judging
    expect."""
    passes: _Word = "safe"
    """First word of an answer that passes a text, in lower case."""
    refuses: _Word = "unsafe"
    """First word of an answer that refuses a text, in lower case. Any other answer is a failure."""
    output_tokens_max: Annotated[int, Field(ge=16, le=8192)] = 64
    """Limit of the verdict in tokens."""


class AppliesToSection(Strict):
    """Requests to judge; one match is enough. If empty, those whose key or people name it."""

    routes: Annotated[tuple[Name, ...], Field(max_length=256)] = ()
    """Routes that a request names, also by an alias."""
    key_tiers: Annotated[tuple[Slug, ...], Field(max_length=64)] = ()
    """Tiers of keys."""
    teams: Annotated[tuple[Id, ...], Field(max_length=256)] = ()
    """Ids of teams, as in `GET /teams`."""
    keys: Annotated[tuple[Id, ...], Field(max_length=256)] = ()
    """Ids of keys, as in `GET /keys`."""


class GuardSection(
    Strict,
    json_schema_extra={
        "oneOf": [{"required": [kind]} for kind in ("patterns", "presidio", "moderation", "judge")]
    },
):
    """A guardrail: the judge, the texts to judge, and the action on findings."""

    patterns: PatternsSection | None = None
    presidio: PresidioSection | None = None
    moderation: ModerationSection | None = None
    judge: JudgeSection | None = None
    stages: Annotated[tuple[JudgedStage, ...], Field(min_length=1, max_length=4)] = (
        "input",
        "output",
    )
    """Texts to judge: the request, the answer with its reasoning, the arguments of tool calls, and
    the results of tools."""
    action: Literal["block", "mask", "flag"] = "block"
    """`block` refuses, `mask` replaces what `patterns` or `presidio` finds, `flag` only records."""
    window: Annotated[int, Field(ge=128, le=16_000)] = 256
    """Characters of an answer that are held back: until their verdict, or, with `patterns` and
    `presidio`, because a match may begin in them."""
    parallel: bool = False
    """True if the provider is called while a model judges the input; the answer waits for the
    verdict."""
    timeout_s: RunSeconds = 10.0
    """Time limit for one verdict, in seconds."""
    applies_to: AppliesToSection | None = None
    """Requests that the guardrail applies to; default: all requests."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        judges = [self.patterns, self.presidio, self.moderation, self.judge]
        if sum(each is not None for each in judges) != 1:
            raise ValueError("must have exactly one of patterns, presidio, moderation and judge")
        finder = self.patterns or self.presidio
        if finder is None and self.action == "mask":
            raise ValueError("can mask only with patterns or presidio")
        if self.restores and self.action != "mask":
            raise ValueError("can restore only with action mask")
        if self.parallel and (finder is not None or "input" not in self.stages):
            raise ValueError("can be parallel only if a model judges the input")
        return self

    @property
    def model(self) -> str | None:
        """Slug of the model that judges; None for patterns."""
        by_model = self.presidio or self.moderation or self.judge
        return by_model.model if by_model is not None else None

    @property
    def restores(self) -> bool:
        """True if the originals replace the masks in answers."""
        finder = self.patterns or self.presidio
        return finder is not None and finder.restores

    @property
    def kind(self) -> Literal["patterns", "presidio", "moderation", "judge"]:
        """The key of the section that judges."""
        if self.patterns is not None:
            return "patterns"
        if self.presidio is not None:
            return "presidio"
        return "moderation" if self.moderation is not None else "judge"


Guards = Annotated[Mapping[Slug, GuardSection], Field(max_length=64)]
_GUARDS: Final[TypeAdapter[Mapping[str, GuardSection]]] = TypeAdapter(Guards)


def read_guards(compiled: bytes) -> Mapping[str, GuardSection]:
    """Return the guardrails in a compiled catalog; raise ValueError for an invalid row."""
    return _GUARDS.validate_json(compiled, strict=True)
