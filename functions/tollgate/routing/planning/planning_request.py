"""The planner's input, built from a new request or from a record."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from operator import attrgetter
from typing import Final, Self

from msgspec import Struct, convert, field
from msgspec.structs import replace

from tollgate.core.limits import CostCeiling
from tollgate.core.principal import Principal
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.records.generation import PromptTokens, ReadSize, RoundsBound, RoutingTrace
from tollgate.core.request import (
    Capability,
    GenerationRequest,
    Modality,
    Need,
    ProviderSort,
    RoutingPreferences,
)
from tollgate.core.service_tiers import plain_tier
from tollgate.core.usage import Units
from tollgate.core.work.base import InputWork, Work
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.pictures import Picture
from tollgate.providers.ports.parameters import effective_parameters
from tollgate.routing.defaults_sections import PromptPolicySection
from tollgate.routing.planning.conversations import conversation_hash
from tollgate.routing.planning.prompt_size import PromptSize

_KEY_LENGTH: Final = 16


def draw_key_hash(draw_key: str) -> str:
    """Return the hash of a session's or request's id, on which all of its draws are based."""
    return sha256(draw_key.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]


class PlanningRequest(Struct, frozen=True, kw_only=True):
    """The requested model, the needs and the size of a request, and the rights of its key."""

    model: str
    """Requested name of a model, alias or route."""
    draw_key_hash: str
    conversation_hash: str | None = None
    """Hash of the conversation's beginning; None with a session id, or for a short prompt."""
    tier: str | None = None
    """Tier of the key."""
    key_models: tuple[str, ...] | None = None
    """Globs of the models that the key may use; None allows all models."""
    level_models: tuple[tuple[str, ...], ...] = ()
    """Globs of the models that each level above the key may use."""
    capabilities: frozenset[Capability] = frozenset()
    modalities: frozenset[Modality] = frozenset({"text"})
    needs: frozenset[Need] = frozenset()
    input_tokens_min: int = 0
    """Minimum number of prompt tokens; models with a smaller context are excluded."""
    input_tokens: int = 0
    """Estimated number of prompt tokens, used by rules and prices."""
    input_tokens_max: int = 0
    """Maximum number of prompt tokens, used to compute the maximum cost."""
    output_tokens_max: int | None = None
    """The caller's limit on output tokens; None if there is none."""
    choices: int = 1
    """Number of choices for each prompt."""
    prompts: tuple[PromptTokens, ...] = ()
    """Size of each prompt if there are several; the other fields then describe the largest one."""
    parameters: frozenset[str] = frozenset()
    """Parameters that every endpoint must support (`require_parameters`); otherwise empty."""
    kind: WorkKind = "chat"
    inputs: int = 0
    """Number of inputs for work other than chat, each of which may fill the context."""
    dimensions: int | None = None
    """Requested number of vector dimensions."""
    units: Units | None = None
    """Estimated units of input work; None for a conversation."""
    units_max: Units | None = None
    """Maximum units of input work, used to compute the maximum cost."""
    picture: Picture | None = None
    """Requested size and quality of images."""
    preset: str | None = None
    """Preset that completed the request."""
    rounds: RoundsBound | None = None
    """Limits for a generation with server tools; None without such tools."""
    documents: ReadSize | None = None
    """Size of the documents that the gateway has read."""
    reads_documents: bool = True
    """False if documents may be served only by models that read them themselves."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    preferences: RoutingPreferences = field(default_factory=RoutingPreferences)
    ceiling: CostCeiling | None = None
    """Highest acceptable cost, as the request or its key states it."""
    budget_left_percent: int | None = None
    """Smallest share that is left of a limit in USD, rounded down; None if no limit is known."""
    service_tier: str | None = None
    """Service tier that the caller asks for, under its common name; None for any."""
    prompt_policies: tuple[PromptPolicy, ...] = ()
    """Prompt policies of the gateway, the levels and the key; a request's is a preference."""
    fallbacks: bool = True
    """False allows only the first model of the chain."""
    route_sort: ProviderSort | None = None
    """Order of endpoints that the route states."""
    is_compaction: bool = False
    """True if the answer replaces the conversation."""
    only_provider: str | None = None
    """Provider that compacted the conversation, if only it can read the result."""

    @classmethod
    def of(
        cls,
        request: Work,
        *,
        principal: Principal,
        request_id: str,
        fallbacks: bool = True,
        rounds: RoundsBound | None = None,
        ceilings: Iterable[CostCeiling] = (),
        budget_left_percent: int | None = None,
    ) -> Self:
        """Build the planner's input; draws use the id of the session, or else of the request.

        `ceilings` are those of the request and its session, which may be above the key's.
        """
        sizes = PromptSize.of_each(request)
        work = request if isinstance(request, InputWork) else None
        compaction = request.compaction if isinstance(request, GenerationRequest) else None
        input_tokens = max(size.estimate for size in sizes)
        return cls(
            model=request.model,
            draw_key_hash=draw_key_hash(request.preferences.session_id or request_id),
            conversation_hash=conversation_hash(request, principal.workspace_id, input_tokens),
            tier=principal.tier,
            key_models=principal.models,
            level_models=principal.level_models,
            capabilities=request.capabilities,
            modalities=request.modalities,
            needs=request.needs,
            input_tokens_min=max(size.least for size in sizes),
            input_tokens=input_tokens,
            input_tokens_max=max(size.most for size in sizes),
            output_tokens_max=request.output_tokens_max,
            choices=request.choices,
            prompts=tuple(PromptTokens(estimate=size.estimate, most=size.most) for size in sizes)
            if len(sizes) > 1
            else (),
            # Input work lists its parameters as needs.
            parameters=frozenset(effective_parameters(request))
            if request.preferences.require_parameters and not isinstance(request, InputWork)
            else frozenset(),
            kind=request.kind,
            inputs=work.inputs if work else 0,
            dimensions=work.dimensions if work else None,
            units=work.units if work else None,
            units_max=work.units_max if work else None,
            picture=work.picture if work else None,
            preset=request.preset if isinstance(request, GenerationRequest) else None,
            rounds=rounds,
            reads_documents=not request.leaves_documents,
            metadata=request.metadata,
            preferences=request.preferences,
            ceiling=min(
                (*_ceilings_of(principal), *ceilings), key=attrgetter("nano_usd"), default=None
            ),
            budget_left_percent=budget_left_percent,
            service_tier=plain_tier(request.service_tier)
            if isinstance(request, GenerationRequest)
            else None,
            prompt_policies=principal.prompt_policies,
            fallbacks=fallbacks,
            is_compaction=compaction is not None and compaction.is_asked,
            only_provider=None if compaction is None else compaction.only_provider,
        )

    @classmethod
    def recorded(cls, trace: RoutingTrace) -> Self:
        """Build the planner's input from a record, which has only the metadata that rules read."""
        shared = {
            name: getattr(trace, name)
            for name in RoutingTrace.__struct_fields__
            if name in cls.__struct_fields__
        }
        names = {"model": trace.requested_model, "input_tokens": trace.estimated_input_tokens}
        preferences = trace.preferences or RoutingPreferences()
        return convert({**shared, **names, "preferences": preferences}, cls)

    @property
    def sort(self) -> ProviderSort | None:
        """Order of endpoints: the caller's, or else the route's."""
        return self.preferences.sort or self.route_sort

    def under(
        self, section: PromptPolicySection | None, *, sort: ProviderSort | None = None
    ) -> Self:
        """Return the request under a catalog's prompt policy, in place of a recorded one, and with
        the order of endpoints that the route states.
        """
        if section is None and sort is None and not self.prompt_policies:
            return self
        others = (each for each in self.prompt_policies if each.owner != "gateway")
        of_gateway = () if section is None else (section.policy,)
        return replace(self, prompt_policies=(*of_gateway, *others), route_sort=sort)

    @property
    def each_prompt(self) -> tuple[PromptTokens, ...]:
        """Size of each prompt."""
        single = PromptTokens(estimate=self.input_tokens, most=self.input_tokens_max)
        return self.prompts or (single,)

    def trace(
        self,
        *,
        route: str | None,
        rule: int | None,
        metadata_names: frozenset[str],
        bent: bool = False,
        is_candidate: bool = False,
    ) -> RoutingTrace:
        """Return the trace for a record, with only the metadata that rules read."""
        preferences = self.preferences
        stated = None if preferences == _NO_PREFERENCES else replace(preferences, session_id=None)
        return RoutingTrace(
            requested_model=self.model,
            route=route,
            rule=rule,
            bent=bent,
            is_candidate=is_candidate,
            capabilities=tuple(sorted(self.capabilities)),
            modalities=tuple(sorted(self.modalities)),
            needs=tuple(sorted(self.needs)),
            estimated_input_tokens=self.input_tokens,
            parameters=tuple(sorted(self.parameters)),
            metadata={name: self.metadata[name] for name in metadata_names & self.metadata.keys()},
            metadata_read=tuple(sorted(metadata_names)),
            # A record has a hash of the session's id, not the id itself.
            preferences=stated,
            **{name: getattr(self, name) for name in _RECORDED_AS_IS},
        )


def _ceilings_of(principal: Principal) -> Iterator[CostCeiling]:
    if principal.cost_max_nano_usd is not None:
        yield CostCeiling(level="key", id=principal.key_id, nano_usd=principal.cost_max_nano_usd)


_NO_PREFERENCES: Final = RoutingPreferences()
_SORTED: Final = frozenset({"capabilities", "modalities", "needs", "parameters"})
# Fields that have the same name and type in a record's trace.
_RECORDED_AS_IS: Final = tuple(
    name
    for name in PlanningRequest.__struct_fields__
    if name in RoutingTrace.__struct_fields__ and name not in {*_SORTED, "metadata", "preferences"}
)
