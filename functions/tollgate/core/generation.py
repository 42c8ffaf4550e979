"""The record of one generation: what was asked, who served it, what it cost and why."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

from msgspec import Struct, field

from tollgate.core.events import Finish
from tollgate.core.request import Capability, Modality, RoutingPreferences
from tollgate.core.usage import Usage

Outcome = Literal["ok", "error", "cancelled", "lost"]
UsageSource = Literal["provider", "estimated", "none"]


class BillLine(Struct, frozen=True, kw_only=True):
    """One line of a bill: `quantity` units at a rate, rounded half up to a nano-dollar."""

    item: str
    quantity: int
    usd_per_million: Decimal
    cost_nano_usd: int


class Fee(Struct, frozen=True, kw_only=True):
    """What is charged by the piece: runs of a server tool, pages of a document."""

    item: str
    quantity: int
    usd_each: Decimal


class AttemptRecord(Struct, frozen=True, kw_only=True):
    """One try at one endpoint; `error` is None for the attempt that served.

    `operator_cost_nano_usd` is what it cost us where a provider reported usage and then broke.
    """

    model: str
    provider: str
    error: str | None
    status: int | None
    duration_ms: int
    operator_cost_nano_usd: int = 0


class RoutingTrace(Struct, frozen=True, kw_only=True):
    """What the planner saw, kept so that a plan can be replayed against another catalog.

    `rule` counts from 1 within the route. `metadata` are those that rules could read, whose names
    are `metadata_read`; `preferences` is None where the caller had none.
    """

    requested_model: str
    route: str | None
    rule: int | None
    draw_key_hash: str
    tier: str | None
    capabilities: tuple[Capability, ...]
    estimated_input_tokens: int
    output_tokens_max: int | None
    metadata: Mapping[str, str] = field(default_factory=dict)
    metadata_read: tuple[str, ...] = ()
    modalities: tuple[Modality, ...] = ("text",)
    input_tokens_min: int = 0
    input_tokens_max: int = 0
    choices: int = 1
    parameters: tuple[str, ...] = ()
    preferences: RoutingPreferences | None = None
    key_models: tuple[str, ...] | None = None
    fallbacks: bool = True


class GenerationRecord(Struct, frozen=True, kw_only=True):
    """Everything that is kept of one generation; never a prompt, never an answer.

    `cost_nano_usd` is what the caller pays: the sum of `lines`, or 0 unless the outcome says
    otherwise. `model` and `provider` are None when nothing served it. `key_label` and `labels` are
    what the key was called when it asked; a record that the sweeper wrote has none. `shard` is the
    wallet shard that pays: a hold of this id on any other is a write that came twice.
    """

    id: str
    created_s: int
    workspace_id: str
    key_id: str
    outcome: Outcome
    streamed: bool
    catalog_sha: str
    trace: RoutingTrace
    model: str | None = None
    provider: str | None = None
    upstream_model: str | None = None
    upstream_id: str | None = None
    finish: Finish | None = None
    raw_finish: str | None = None
    service_tier: str | None = None
    error: str | None = None
    usage: Usage = field(default_factory=Usage)
    usage_source: UsageSource = "none"
    cost_nano_usd: int = 0
    held_nano_usd: int = 0
    shard: int = 0
    lines: tuple[BillLine, ...] = ()
    attempts: tuple[AttemptRecord, ...] = ()
    raw_usage: object = None
    duration_ms: int = 0
    first_token_ms: int | None = None
    ingress_format: str = "chat_completions"
    client_request_id: str | None = None
    user: str | None = None
    key_label: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
