"""Input of a plan from a request and its key, or from a record that is planned again."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, Self

from msgspec import Struct, convert, field
from msgspec.structs import replace

from tollgate.core.principal import Principal
from tollgate.core.records.generation import PromptTokens, ReadSize, RoundsBound, RoutingTrace
from tollgate.core.request import Capability, Modality, Need, RoutingPreferences
from tollgate.core.usage import Units
from tollgate.core.work.base import InputWork, Work
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.pictures import Picture
from tollgate.providers.ports.parameters import effective_parameters
from tollgate.routing.planning.prompt_size import PromptSize

_KEY_LENGTH: Final = 16


def draw_key_hash(draw_key: str) -> str:
    """Hash the id of a session or request; the hash is the key of its draws and is recorded."""
    return sha256(draw_key.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]


class PlanningRequest(Struct, frozen=True, kw_only=True):
    """Request as the planner sees it: requested name, needs, sizes, and the key's rights."""

    model: str
    """Requested name: a model, an alias or a route."""
    draw_key_hash: str
    tier: str | None = None
    """Tier of the key."""
    key_models: tuple[str, ...] | None = None
    """Globs of the models that the key may use; None allows every model."""
    level_models: tuple[tuple[str, ...], ...] = ()
    """Globs of the key's member and team."""
    capabilities: frozenset[Capability] = frozenset()
    modalities: frozenset[Modality] = frozenset({"text"})
    needs: frozenset[Need] = frozenset()
    input_tokens_min: int = 0
    """Tokens that the prompt certainly has; models with a smaller context are excluded."""
    input_tokens: int = 0
    """Estimated tokens of the prompt, used by rules and prices."""
    input_tokens_max: int = 0
    """Most tokens that the prompt can have, used to compute the highest cost."""
    output_tokens_max: int | None = None
    """Caller's limit on output tokens; None if there is none."""
    choices: int = 1
    """Choices for each prompt."""
    prompts: tuple[PromptTokens, ...] = ()
    """Size of each prompt if there are several; the sizes above are then those of the largest."""
    parameters: frozenset[str] = frozenset()
    """Parameters that every endpoint must support (`require_parameters`); otherwise empty."""
    kind: WorkKind = "chat"
    inputs: int = 0
    """Number of inputs for work other than chat; each may fill the context by itself."""
    dimensions: int | None = None
    """Requested size of vectors."""
    units: Units | None = None
    """Estimated units of work on inputs; None for a conversation."""
    units_max: Units | None = None
    """Most units of work on inputs, used to compute the highest cost."""
    picture: Picture | None = None
    """Requested size and quality of pictures."""
    rounds: RoundsBound | None = None
    """Bounds of a generation for which the gateway runs tools; None for any other."""
    documents: ReadSize | None = None
    """Size of the documents that the gateway has read."""
    reads_documents: bool = True
    """False if only models that read documents may serve a request with one."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    preferences: RoutingPreferences = field(default_factory=RoutingPreferences)
    fallbacks: bool = True
    """False allows only the first model of the chain."""

    @classmethod
    def of(
        cls,
        request: Work,
        *,
        principal: Principal,
        request_id: str,
        fallbacks: bool = True,
        rounds: RoundsBound | None = None,
    ) -> Self:
        """Describe a request for the planner; draws use the session's id or else the request's."""
        sizes = PromptSize.of_each(request)
        work = request if isinstance(request, InputWork) else None
        return cls(
            model=request.model,
            draw_key_hash=draw_key_hash(request.preferences.session_id or request_id),
            tier=principal.tier,
            key_models=principal.models,
            level_models=principal.level_models,
            capabilities=request.capabilities,
            modalities=request.modalities,
            needs=request.needs,
            input_tokens_min=max(size.least for size in sizes),
            input_tokens=max(size.estimate for size in sizes),
            input_tokens_max=max(size.most for size in sizes),
            output_tokens_max=request.output_tokens_max,
            choices=request.choices,
            prompts=tuple(PromptTokens(estimate=size.estimate, most=size.most) for size in sizes)
            if len(sizes) > 1
            else (),
            # Work on inputs states its parameters as needs.
            parameters=frozenset(effective_parameters(request))
            if request.preferences.require_parameters and not isinstance(request, InputWork)
            else frozenset(),
            kind=request.kind,
            inputs=work.inputs if work else 0,
            dimensions=work.dimensions if work else None,
            units=work.units if work else None,
            units_max=work.units_max if work else None,
            picture=work.picture if work else None,
            rounds=rounds,
            reads_documents=not request.leaves_documents,
            metadata=request.metadata,
            preferences=request.preferences,
            fallbacks=fallbacks,
        )

    @classmethod
    def recorded(cls, trace: RoutingTrace) -> Self:
        """Describe a recorded request as it was planned at the time.

        A record contains only metadata that a rule of the route read at the time.
        """
        shared = {
            name: getattr(trace, name)
            for name in RoutingTrace.__struct_fields__
            if name in cls.__struct_fields__
        }
        names = {"model": trace.requested_model, "input_tokens": trace.estimated_input_tokens}
        preferences = trace.preferences or RoutingPreferences()
        return convert({**shared, **names, "preferences": preferences}, cls)

    @property
    def each_prompt(self) -> tuple[PromptTokens, ...]:
        """Size of each prompt."""
        one = PromptTokens(estimate=self.input_tokens, most=self.input_tokens_max)
        return self.prompts or (one,)

    def trace(
        self, *, route: str | None, rule: int | None, metadata_names: frozenset[str]
    ) -> RoutingTrace:
        """Build the trace for the record, with only the metadata in `metadata_names`.

        Metadata may be sensitive, so a record stores only values that rules read.
        """
        preferences = self.preferences
        return RoutingTrace(
            requested_model=self.model,
            route=route,
            rule=rule,
            draw_key_hash=self.draw_key_hash,
            tier=self.tier,
            key_models=self.key_models,
            level_models=self.level_models,
            capabilities=tuple(sorted(self.capabilities)),
            modalities=tuple(sorted(self.modalities)),
            needs=tuple(sorted(self.needs)),
            input_tokens_min=self.input_tokens_min,
            estimated_input_tokens=self.input_tokens,
            input_tokens_max=self.input_tokens_max,
            output_tokens_max=self.output_tokens_max,
            choices=self.choices,
            prompts=self.prompts,
            parameters=tuple(sorted(self.parameters)) if preferences.require_parameters else (),
            kind=self.kind,
            inputs=self.inputs,
            dimensions=self.dimensions,
            units=self.units,
            units_max=self.units_max,
            picture=self.picture,
            rounds=self.rounds,
            documents=self.documents,
            reads_documents=self.reads_documents,
            metadata={name: self.metadata[name] for name in metadata_names & self.metadata.keys()},
            metadata_read=tuple(sorted(metadata_names)),
            # The record has the hash of the session's id instead of the id.
            preferences=None
            if preferences == _NO_PREFERENCES
            else replace(preferences, session_id=None),
            fallbacks=self.fallbacks,
        )


_NO_PREFERENCES: Final = RoutingPreferences()
