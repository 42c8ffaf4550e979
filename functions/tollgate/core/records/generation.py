"""The record of one generation: its request, routing, attempts, usage and cost.

Fields with their default value are not stored, because DynamoDB bills writes by the kilobyte and a
record fits into one. The default is filled in on reading, so it must never change.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from msgspec import Struct, field

from tollgate.core.events import Finish
from tollgate.core.limits import AboveKey, CostCeiling
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.request import Capability, Modality, Need, ProviderSort, RoutingPreferences
from tollgate.core.routing.endpoint_status import Speed
from tollgate.core.usage import Units, Usage
from tollgate.core.work.kinds import WorkKind
from tollgate.core.work.pictures import Picture

Outcome = Literal["ok", "error", "cancelled", "lost"]
# `bounded`: the provider reported more usage than is possible, so only the upper bound is billed.
UsageSource = Literal["provider", "estimated", "bounded", "none"]

# From the mildest to the strictest; `failed` if there was no verdict.
JudgementVerdict = Literal["pass", "flag", "mask", "block", "failed"]


class BillLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a bill: `quantity` units at a rate, rounded half up to a nano-dollar."""

    item: str
    quantity: int
    usd_per_million: Decimal
    cost_nano_usd: int
    round: int | None = None
    """The round that the line belongs to, from 1; None if the generation has only one round."""
    service_tier: str | None = None
    """The service tier whose rate applies; None for the default."""


def total_nano_usd(lines: tuple[BillLine, ...]) -> int:
    """Add up the lines of a bill."""
    return sum(line.cost_nano_usd for line in lines)


class Fee(Struct, frozen=True, kw_only=True):
    """A charge per piece, such as per run of a server tool or per page of a document."""

    item: str
    quantity: int
    usd_each: Decimal


class AttemptRecord(Struct, frozen=True, kw_only=True):
    """One attempt at one endpoint."""

    model: str
    provider: str
    error: str | None
    """The code of the error; None for the attempt that served."""
    status: int | None
    """The provider's HTTP status, if the attempt failed."""
    duration_ms: int
    operator_cost_nano_usd: int = 0
    """The operator's cost, including tool runs, if the provider failed after reporting usage."""
    provider_words: str = ""
    """The provider's message about a failure, with secrets and parts of the prompt removed."""
    service_tier: str | None = None
    """The service tier that the gateway requested; None for the default."""


class RunRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a gateway tool, without the query or the result."""

    tool: str
    engine: str
    """The name of the engine in routing.yaml; empty if the run did not reach an engine."""
    round: int
    """The round in which the model requested the run, from 1."""
    query_hash: str
    """The start of the SHA-256 of the run's arguments."""
    duration_ms: int
    began_ms: int = 0
    """The start of the run, in milliseconds after the start of the first round."""
    error: str | None = None
    """The error code that the model got; None for a run that succeeded."""
    cost_nano_usd: int = 0


class JudgementRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The judgements of one guardrail on one stage of a conversation, without any text."""

    guardrail: str
    """The name in routing.yaml."""
    stage: str
    """`input`, `output`, `tool_arguments` or `tool_results`."""
    verdict: JudgementVerdict = "pass"
    """The strictest verdict."""
    findings: tuple[str, ...] = ()
    """The kinds of findings, such as `card_number` or a moderation category."""
    pieces: int = 1
    """The number of texts or pieces of texts that were judged."""
    duration_ms: int = 0
    cost_nano_usd: int = 0


class ReusedAnswer(Struct, frozen=True, kw_only=True):
    """The stored answer of an earlier generation, which was sent in place of a new one."""

    generation_id: str
    saved_nano_usd: int
    """The cost of the earlier answer, minus the price of its reuse."""


class ShadowTrace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The link from a shadow generation to its original, and the comparison of both, without text.

    A judge's generation has the same link, with the judge's verdict.
    """

    generation_id: str
    """The original generation, which another workspace may own."""
    route: str
    model: str | None
    """The model that served the original."""
    cost_nano_usd: int
    """The original's cost. The next four fields are also figures of the original."""
    duration_ms: int
    first_token_ms: int | None
    output_tokens: int
    refused: bool = False
    shadow_refused: bool = False
    tool_calls: Literal["same", "different"] | None = None
    """`same` if both called the same tools with the same arguments; None if neither called any."""
    judges: bool = False
    """True for the generation of the judge."""
    preferred: Literal["original", "shadow", "neither"] | None = None
    """The judge's verdict; None if there is none."""


class RoundsBound(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Upper bounds for the rounds of one generation; the hold covers them."""

    rounds_max: int
    result_tokens: int
    """The number of tokens in the results of all runs, which every later prompt may contain."""
    fees_nano_usd: int
    """The total fees of all runs."""
    provider_searches_max: int = 0
    """The maximum number of searches that the provider runs itself, at its endpoint's price."""


class PromptTokens(Struct, frozen=True, kw_only=True):
    """The size of one prompt in a request with several prompts."""

    estimate: int
    most: int
    """The upper bound, which determines the maximum cost."""


class ReadSize(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Documents that the gateway reads for endpoints that cannot read them."""

    types: tuple[str, ...]
    """The media types of the documents."""
    tokens_min: int = 0
    """A lower bound on the prompt's tokens, including the text that was read."""
    pages: int = 0
    """The number of PDF pages that are charged."""
    recognized: int = 0
    """The maximum number of PDF pages that OCR transcribes for a fee."""
    always: bool = False
    """True if the documents are read for every endpoint."""


class RoutingTrace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The planner's input and choice, which allow the plan to be replayed with another catalog."""

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
    """The caller's metadata, restricted to the names in `metadata_read`."""
    metadata_read: tuple[str, ...] = ()
    """The names of the metadata that the route's rules read."""
    modalities: tuple[Modality, ...] = ("text",)
    needs: tuple[Need, ...] = ()
    is_compaction: bool = False
    """True if the answer replaces the conversation."""
    input_tokens_min: int = 0
    input_tokens_max: int = 0
    choices: int = 1
    """The number of answers to each prompt."""
    prompts: tuple[PromptTokens, ...] = ()
    """The size of every prompt if there are several; the other fields then describe the largest
    one.
    """
    parameters: tuple[str, ...] = ()
    kind: WorkKind = "chat"
    inputs: int = 0
    """The number of inputs, for work other than chat; each input may fill the model's whole
    context.
    """
    dimensions: int | None = None
    """The requested number of vector dimensions."""
    units: Units | None = None
    """The estimated units of input work; None for chat."""
    units_max: Units | None = None
    """The upper bound on the units, which determines the maximum cost."""
    picture: Picture | None = None
    """The size and quality of the requested images."""
    documents: ReadSize | None = None
    """The documents that the gateway reads; None if there are none."""
    reads_documents: bool = True
    """False if the caller wants only models that read documents themselves."""
    preferences: RoutingPreferences | None = None
    """The caller's routing preferences; None if there are none."""
    preset: str | None = None
    """The preset that completed the request, with its definition in the record's catalog."""
    rounds: RoundsBound | None = None
    """The bounds of the rounds; None if the gateway runs no tools."""
    ceiling: CostCeiling | None = None
    """The lower of the ceilings of the request and its key; None if neither has one."""
    budget_left_percent: int | None = None
    """The smallest remaining share of a limit in USD, rounded down; None if no share was known."""
    key_models: tuple[str, ...] | None = None
    level_models: tuple[tuple[str, ...], ...] = ()
    fallbacks: bool = True
    service_tier: str | None = None
    """The service tier that the caller asked for, under its common name; None for any."""
    prompt_policies: tuple[PromptPolicy, ...] = ()
    """The prompt policies of the gateway, the levels and the key."""
    conversation_hash: str | None = None
    """The hash of the conversation's beginning; None with a session id, or for a short prompt."""
    probe: str | None = None
    """The endpoint that the request probed after a cooldown; None if it probed none."""
    speeds: Mapping[str, Speed] = field(default_factory=dict)
    """The endpoints' measurements, if the request was sorted by them."""
    explored: str | None = None
    """The endpoint that came first because its figures were old or few; None if none did."""
    sorted_by: ProviderSort | None = None
    """The measure by which `speeds` sorted the endpoints; None if they were not sorted."""
    bent: bool = False
    """True if the rule that applied has a condition on the budget."""
    quotas_used_up: tuple[str, ...] = ()
    """The quotas of the key whose models the plan left out, because they were used up."""
    is_candidate: bool = False
    """True if the catalog was a candidate, which served a share of the keys."""

    @property
    def every_policy(self) -> tuple[PromptPolicy, ...]:
        """The prompt policies that restricted the request, including the request's."""
        own = None if self.preferences is None else self.preferences.prompt_policy
        return self.prompt_policies if own is None else (*self.prompt_policies, own)

    @property
    def bend(self) -> str | None:
        """The rule that applied because of its budget, and the remaining share; None otherwise."""
        if not self.bent:
            return None
        return f"{self.route} rule {self.rule}; {self.budget_left_percent}% left"


class GenerationRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The stored record of one generation, which contains no text of the prompt or the answer."""

    id: str
    created_s: int
    workspace_id: str
    key_id: str
    outcome: Outcome
    streamed: bool
    catalog_sha: str
    trace: RoutingTrace
    model: str | None = None
    """None if no attempt served, like `provider`."""
    provider: str | None = None
    upstream_model: str | None = None
    upstream_id: str | None = None
    finish: Finish | None = None
    raw_finish: str | None = None
    withheld_calls: int = 0
    """The number of tool calls withheld because the caller allowed at most one per choice."""
    service_tier: str | None = None
    """The service tier that the provider reported, by the provider's name."""
    error: str | None = None
    usage: Usage = field(default_factory=Usage)
    usage_source: UsageSource = "none"
    cost_nano_usd: int = 0
    """The price that the caller pays: the sum of `lines`; 0 for an error."""
    held_nano_usd: int = 0
    shard: int = 0
    """The wallet shard that pays. A hold with this id on another shard comes from a duplicate
    write.
    """
    slices: Mapping[AboveKey, int] = field(default_factory=dict)
    """The slices of the member and the team that pay, stored unless 0; like `shard`, they reveal
    duplicate writes.
    """
    lines: tuple[BillLine, ...] = ()
    rounds: tuple[Usage, ...] = ()
    """The usage of each round if there are several; `usage` is the total."""
    runs: tuple[RunRecord, ...] = ()
    """The runs of the gateway's tools, in the order in which they ended."""
    judgements: tuple[JudgementRecord, ...] = ()
    """The judgements of the gateway's guardrails, by guardrail and stage."""
    attempts: tuple[AttemptRecord, ...] = ()
    reused: ReusedAnswer | None = None
    """The earlier answer that was sent, in which case no provider was called; else None."""
    shadow: ShadowTrace | None = None
    """The original of a generation that repeats another one for comparison; None for others."""
    raw_usage: object = None
    duration_ms: int = 0
    first_token_ms: int | None = None
    ingress_format: str = "chat_completions"
    client_request_id: str | None = None
    user: str | None = None
    key_label: str = ""
    """The key's label at the time of the request; empty if the sweeper wrote the record."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The key's labels at the time of the request; empty if the sweeper wrote the record."""
    caller_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that the caller sent about itself, in fields that routing.yaml names."""
    api_gateway_request_id: str | None = None
    """None outside AWS, or if the sweeper wrote the record; the same is true of
    `lambda_request_id`.
    """
    lambda_request_id: str | None = None
    adapted: tuple[str, ...] = ()
    """The names of options that had no effect, or a different effect, at the last endpoint."""
    forwarded: tuple[str, ...] = ()
    """The names of unknown fields that were passed unchanged to or from the provider."""
    limit_warning: str | None = None
    """The most used limit of the key and its used share, of which the reply warned."""
    is_bill: bool = False
    """True if the record has expired, and only what explains its cost is left."""

    @property
    def all_labels(self) -> Mapping[str, str]:
        """The labels of the key and of the caller; the key's labels take precedence."""
        return {**self.caller_labels, **self.labels} if self.caller_labels else self.labels
