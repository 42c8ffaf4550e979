"""Work on inputs: a request that one result answers, in place of a conversation's stream.

A kind of such work is a subclass of `InputWork` with its inputs and options.
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
    """The requested model, and what the engine and the planner read of any kind of inputs."""

    kind: ClassVar[WorkKind]
    # One answer, of which the engine reads nothing but its usage.
    answers: ClassVar[int] = 1
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
    """True if the result is wanted piece by piece, as far as its provider can."""

    @property
    @abstractmethod
    def own_texts(self) -> tuple[str, ...]:
        """The caller's texts, which no record may have."""

    @property
    @abstractmethod
    def bytes_per_input(self) -> tuple[int, ...]:
        """The bytes of each input that is text."""

    @property
    def tokens_per_input(self) -> tuple[int, ...]:
        """The tokens of each input that has been tokenized by the caller."""
        return ()

    @property
    def inputs(self) -> int:
        """The number of inputs, each of which has a model's whole context to itself."""
        return len(self.bytes_per_input) + len(self.tokens_per_input)

    @property
    def units(self) -> Units:
        """The units that it likely is: what a price is estimated by."""
        return Units()

    @property
    def units_max(self) -> Units:
        """The most units that it can be: what is held, and more is not believed."""
        return self.units

    def likely_output_tokens(self, output_bytes: int) -> int:
        """Return the tokens of output of which so many bytes were delivered, the rest never."""
        return self.units.output_tokens

    def by_medium(self, likely: Usage) -> Usage:
        """Return likely usage with the parts of it that are no text: these have their own rates."""
        return likely

    @property
    def output_tokens_max(self) -> int | None:
        """The bound of the tokens of its output."""
        return self.units_max.output_tokens

    @property
    def picture(self) -> Picture | None:
        """The form of the requested pictures; None if it makes none."""
        return None

    @property
    def modalities(self) -> frozenset[Modality]:
        """The kinds of input that a model must accept to serve the request."""
        return frozenset({"text"})

    @property
    def files(self) -> tuple[FileReference, ...]:
        """The uploaded files of its inputs, whose contents take their place before the plan."""
        return ()

    @property
    def names_files(self) -> bool:
        """True if an input is an uploaded file, named by its id."""
        return bool(self.files)

    @property
    def addresses(self) -> frozenset[str]:
        """The URLs of its inputs, which are fetched for a provider that does not fetch them."""
        return frozenset()

    def inline(self, found: Mapping[str, InlineMedia]) -> Self:
        """Return the work with the content of inputs in place of their URLs, or ids of files."""
        return self

    @property
    def needs(self) -> frozenset[Need]:
        """The needs of the request that a provider's format must have room for."""
        return frozenset()

    @property
    def dimensions(self) -> int | None:
        """The size of each vector that is requested; None for the model's own, or no vectors."""
        return None


Work = GenerationRequest | InputWork


class WorkResult(Struct, frozen=True, kw_only=True):
    """The result of work on inputs, as one provider reported it."""

    pieces: tuple[bytes, ...]
    """A piece of JSON for each part of the result, in the order of the inputs."""
    usage: Usage = field(default_factory=Usage)
    raw_usage: JsonValue = None
    upstream_id: str | None = None
    served_model: str | None = None
