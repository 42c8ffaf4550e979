"""Input work: requests that return a single result rather than a conversation.

Each kind of work is a subclass of `InputWork` with its own inputs and options.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

from msgspec import Struct, field

from tollgate.core.content import FileReference, InlineMedia
from tollgate.core.json_value import JsonValue
from tollgate.core.request import Capability, GenerationRequest, Modality, Need, RoutingPreferences
from tollgate.core.usage import Units, Usage
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.pictures import Picture


class InputWork(Struct, frozen=True, kw_only=True):
    """A request for input work, with the properties that the engine and the planner read."""

    kind: ClassVar[WorkKind]
    answers: ClassVar[int] = 1
    """Always 1: work has a single answer, and the engine reads only its usage."""
    choices: ClassVar[int] = 1
    echo: ClassVar[bool] = False
    wants_single_call: ClassVar[bool] = False
    has_documents: ClassVar[bool] = False
    leaves_documents: ClassVar[bool] = False
    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    model: str
    user: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    preferences: RoutingPreferences = field(default_factory=RoutingPreferences)
    stream: bool = False
    """True if the caller wants the result streamed, if the provider is able to."""

    @property
    @abstractmethod
    def own_texts(self) -> tuple[str, ...]:
        """The caller's texts, which must not appear in any record."""

    @property
    @abstractmethod
    def bytes_per_input(self) -> tuple[int, ...]:
        """The size in bytes of each text input."""

    @property
    def tokens_per_input(self) -> tuple[int, ...]:
        """The size in tokens of each input that the caller sent as token ids."""
        return ()

    @property
    def inputs(self) -> int:
        """The number of inputs, each of which may fill the model's whole context."""
        return len(self.bytes_per_input) + len(self.tokens_per_input)

    @property
    def units(self) -> Units:
        """The likely units of the work, used to estimate its cost."""
        return Units()

    @property
    def units_max(self) -> Units:
        """The upper bound on the units, which determines the hold; larger reports are not
        trusted.
        """
        return self.units

    def likely_output_tokens(self, output_bytes: int) -> int:
        """Estimate the output tokens of a truncated result from the number of bytes delivered."""
        return self.units.output_tokens

    def by_medium(self, likely: Usage) -> Usage:
        """Split estimated usage by modality, since audio and images have their own rates."""
        return likely

    @property
    def output_tokens_max(self) -> int | None:
        """The upper bound on the output tokens."""
        return self.units_max.output_tokens

    @property
    def picture(self) -> Picture | None:
        """The size and quality of the requested images; None for work that makes no images."""
        return None

    @property
    def modalities(self) -> frozenset[Modality]:
        """The kinds of input that a model must accept to serve the request."""
        return frozenset({"text"})

    @property
    def files(self) -> tuple[FileReference, ...]:
        """The uploaded files among the inputs, replaced by their contents before planning."""
        return ()

    @property
    def names_files(self) -> bool:
        """True if an input refers to an uploaded file by its id."""
        return bool(self.files)

    @property
    def addresses(self) -> frozenset[str]:
        """The URLs among the inputs, which the gateway fetches for providers that cannot fetch
        URLs.
        """
        return frozenset()

    def inline(self, found: Mapping[str, InlineMedia]) -> Self:
        """Return the work with media content in place of URLs and file ids."""
        return self

    @property
    def needs(self) -> frozenset[Need]:
        """The features that a provider's format must support to serve the request."""
        return frozenset()

    @property
    def dimensions(self) -> int | None:
        """The requested number of dimensions; None for the model's default, or if no vectors are
        requested.
        """
        return None


Work = GenerationRequest | InputWork


class WorkResult(Struct, frozen=True, kw_only=True):
    """The result of input work, as reported by one provider."""

    pieces: tuple[bytes, ...]
    """Pieces of JSON, one for each part of the result, in the order of the inputs."""
    usage: Usage = field(default_factory=Usage)
    raw_usage: JsonValue = None
    upstream_id: str | None = None
    served_model: str | None = None
