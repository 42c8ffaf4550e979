"""The record of one generation: its request, the endpoint that served it, its cost and why.

What is stored leaves out fields that have their default, which a read fills in again: a default
never changes. DynamoDB bills a write by the kilobyte, and a record stays within one.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from msgspec import Struct, field

from tollgate.core.events import Finish
from tollgate.core.limits import AboveKey
from tollgate.core.request import Capability, Modality, Need, RoutingPreferences
from tollgate.core.usage import Units, Usage
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.pictures import Picture

Outcome = Literal["ok", "error", "cancelled", "lost"]
# `bounded`: the provider reported more than the generation can have used, and the bound is billed.
UsageSource = Literal["provider", "estimated", "bounded", "none"]


class BillLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a bill: `quantity` units at a rate, rounded half up to a nano-dollar."""

    item: str
    quantity: int
    usd_per_million: Decimal
    cost_nano_usd: int
    round: int | None = None
    """The round that it is of, from 1; None where the generation has one round."""


def total_nano_usd(lines: tuple[BillLine, ...]) -> int:
    """Add up the lines of a bill."""
    return sum(line.cost_nano_usd for line in lines)


class Fee(Struct, frozen=True, kw_only=True):
    """A charge by the piece: runs of a server tool, pages of a document."""

    item: str
    quantity: int
    usd_each: Decimal


class AttemptRecord(Struct, frozen=True, kw_only=True):
    """One try at one endpoint."""

    model: str
    provider: str
    error: str | None
    """The code of its error; None for the attempt that served."""
    status: int | None
    """The provider's HTTP status of a failure."""
    duration_ms: int
    operator_cost_nano_usd: int = 0
    """The operator's cost if the provider reported usage and then failed, with runs of tools."""
    provider_words: str = ""
    """The words of the provider about a failure, without secrets and pieces of the prompt."""


class RunRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a tool of the gateway's; never has its query or its result."""

    tool: str
    engine: str
    """The engine as routing.yaml names it; empty for a run that reached none."""
    round: int
    """The round whose answer asked for it, from 1."""
    query_hash: str
    """The start of the SHA-256 of its arguments."""
    duration_ms: int
    began_ms: int = 0
    """Milliseconds from the beginning of the first round."""
    error: str | None = None
    """The code that the model got; None for a run that succeeded."""
    cost_nano_usd: int = 0


class RoundsBound(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The most that the rounds of one generation can be: what is held."""

    rounds_max: int
    result_tokens: int
    """The tokens of the results of all runs, which each later prompt may have."""
    fees_nano_usd: int
    """The fees of all runs."""
    provider_searches_max: int = 0
    """The searches of a provider that searches by itself, each at its endpoint's price."""


class PromptTokens(Struct, frozen=True, kw_only=True):
    """The size of one of several prompts."""

    estimate: int
    most: int
    """The bound that costs are computed with."""


class ReadSize(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Documents that the gateway reads for endpoints which do not read them."""

    types: tuple[str, ...]
    """The media types of the documents."""
    tokens_min: int = 0
    """The tokens of the prompt that are certain, with the text that was read."""
    pages: int = 0
    """The pages of PDFs that are charged for."""
    recognized: int = 0
    """The pages of PDFs whose text is recognized, at most, and charged for as such."""
    always: bool = False
    """True if they are read for every endpoint."""


class RoutingTrace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The planner's input and choice, with which a plan is replayed against another catalog."""

    requested_model: str
    route: str | None
    rule: int | None
    """The rule that matched, counted from 1 within the route."""
    draw_key_hash: str
    tier: str | None
    capabilities: tuple[Capability, ...]
    estimated_input_tokens: int
    output_tokens_max: int | None
    metadata: Mapping[str, str] = field(default_factory=dict)
    """The caller's metadata under the names of `metadata_read`."""
    metadata_read: tuple[str, ...] = ()
    """The names of metadata that the route's rules read."""
    modalities: tuple[Modality, ...] = ("text",)
    needs: tuple[Need, ...] = ()
    input_tokens_min: int = 0
    input_tokens_max: int = 0
    choices: int = 1
    """The answers to each prompt."""
    prompts: tuple[PromptTokens, ...] = ()
    """Every prompt's size if there are several: the other fields then are of the largest."""
    parameters: tuple[str, ...] = ()
    kind: WorkKind = "chat"
    inputs: int = 0
    """The inputs of work that is no conversation: each has the model's whole context to itself."""
    dimensions: int | None = None
    """The requested size of vectors."""
    units: Units | None = None
    """The units that work on inputs likely is; None for a conversation."""
    units_max: Units | None = None
    """The bound that costs are computed with."""
    picture: Picture | None = None
    """The form of the requested pictures."""
    documents: ReadSize | None = None
    """The documents that the gateway read, None without any."""
    reads_documents: bool = True
    """False if the caller left documents to models that read them."""
    preferences: RoutingPreferences | None = None
    """None if the caller stated none."""
    rounds: RoundsBound | None = None
    """None where the gateway runs no tools."""
    key_models: tuple[str, ...] | None = None
    level_models: tuple[tuple[str, ...], ...] = ()
    fallbacks: bool = True


class GenerationRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored account of one generation; never contains a prompt or an answer."""

    id: str
    created_s: int
    workspace_id: str
    key_id: str
    outcome: Outcome
    streamed: bool
    catalog_sha: str
    trace: RoutingTrace
    model: str | None = None
    """None if no attempt served; the same holds for `provider`."""
    provider: str | None = None
    upstream_model: str | None = None
    upstream_id: str | None = None
    finish: Finish | None = None
    raw_finish: str | None = None
    withheld_calls: int = 0
    """The tool calls that the model made and the caller did not want: all but one of a choice."""
    service_tier: str | None = None
    error: str | None = None
    usage: Usage = field(default_factory=Usage)
    usage_source: UsageSource = "none"
    cost_nano_usd: int = 0
    """The price for the caller: the sum of `lines`, which is 0 for an error."""
    held_nano_usd: int = 0
    shard: int = 0
    """The wallet shard that pays; a hold of this id on another shard is a write that came twice."""
    slices: Mapping[AboveKey, int] = field(default_factory=dict)
    """The slices of member and team that pay, where not the first; for the same reason."""
    lines: tuple[BillLine, ...] = ()
    rounds: tuple[Usage, ...] = ()
    """The usage of each round where there are several; `usage` is their sum."""
    runs: tuple[RunRecord, ...] = ()
    """The runs of the gateway's tools, in the order in which they ended."""
    attempts: tuple[AttemptRecord, ...] = ()
    raw_usage: object = None
    duration_ms: int = 0
    first_token_ms: int | None = None
    ingress_format: str = "chat_completions"
    client_request_id: str | None = None
    user: str | None = None
    key_label: str = ""
    """The key's label at the time of the request; empty in a record that the sweeper wrote."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The key's labels at the time of the request; none in a record that the sweeper wrote."""
    caller_labels: Mapping[str, str] = field(default_factory=dict)
    """The labels that the caller stated about itself, where routing.yaml reads some."""
    api_gateway_request_id: str | None = None
    """None outside AWS, as `lambda_request_id`, and in a record that the sweeper wrote."""
    lambda_request_id: str | None = None
    adapted: tuple[str, ...] = ()
    """The names of what had no effect, or another one than was requested, at the last endpoint."""

    @property
    def all_labels(self) -> Mapping[str, str]:
        """The labels of the key and of the caller, of which the key's win."""
        return {**self.caller_labels, **self.labels} if self.caller_labels else self.labels
