"""Selects the guardrails of a request, and bounds the cost of their judgements."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from tollgate.core.errors import GatewayError
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest
from tollgate.core.work.base import InputWork, Work
from tollgate.engine.guardrails.judges import OVERLAP, PIECE, questions, unlimited
from tollgate.engine.guardrails.judging import unjudged
from tollgate.engine.guardrails.texts import texts_of
from tollgate.engine.work.inner_calls import plan_inner_call
from tollgate.routing.guardrail_sections import GuardSection, JudgedStage
from tollgate.routing.planning.plan import Plan
from tollgate.routing.planning.planner import Planner

# Above the average characters per token of any answer; usage bounds assume the same.
_CHARACTERS_PER_TOKEN_MAX: Final = 16
_BYTES_PER_CHARACTER_MAX: Final = 4
# Maximum number of parts in an answer; each may end with a piece shorter than a window.
_PARTS_MAX: Final = 16
_OF_REQUESTS: Final[tuple[JudgedStage, ...]] = ("input", "tool_arguments", "tool_results")
_OF_ANSWERS: Final[frozenset[JudgedStage]] = frozenset({"output", "tool_arguments"})


class BoundedGuard(Struct, frozen=True, kw_only=True):
    """A guardrail of a request, with the maximum cost of its judgements."""

    name: str
    row: GuardSection
    cost_max_nano_usd: int


def select_guards(
    planner: Planner, request: Work, principal: Principal
) -> Mapping[str, GuardSection]:
    """Return the guardrails that apply to a request, by name.

    Raises UpstreamError if the catalog lacks one that the key, member or team names.
    """
    named = principal.guardrails
    for missing in sorted(named - planner.catalog.guardrails.rows.keys()):
        raise unjudged(missing)
    names = (request.model, *request.preferences.models)
    routes = {planner.route_of(name) for name in names}
    return {
        name: row
        for name, row in planner.catalog.guardrails.rows.items()
        if name in named
        or (to := row.applies_to) is None
        or not routes.isdisjoint(to.routes)
        or principal.tier in to.key_tiers
        or principal.team_id in to.teams
        or principal.key_id in to.keys
    }


def bound_guards(
    planner: Planner, work: Work, principal: Principal, plan: Plan, *, now_s: float
) -> tuple[BoundedGuard, ...]:
    """Return the guardrails of a request; raise GatewayError if a model cannot judge."""
    held_tokens = planner.catalog.defaults.hold_output_tokens
    bounded: list[BoundedGuard] = []
    judge = unlimited(principal, work)
    for name, row in select_guards(planner, work, principal).items():
        cost = 0
        if row.model is not None:
            for count, characters in _piece_sizes(row, work, plan, held_tokens):
                piece = "x" * (characters * _BYTES_PER_CHARACTER_MAX)
                (question,) = questions(row, [piece])
                try:
                    each = plan_inner_call(planner, question, judge, now_s=now_s)
                except GatewayError as failure:
                    raise unjudged(name) from failure
                cost += count * each.cost_max_nano_usd
        bounded.append(BoundedGuard(name=name, row=row, cost_max_nano_usd=cost))
    return tuple(bounded)


def _piece_sizes(
    row: GuardSection, work: Work, plan: Plan, held_tokens: int
) -> Iterator[tuple[int, int]]:
    """Yield the maximum number of pieces, and their characters, by stage."""
    for stage in _OF_REQUESTS:
        size = _characters(work, stage) if stage in row.stages else 0
        if size:
            pieces = -(-size // (PIECE - OVERLAP))
            # An analyzer also reads the joints between parts, and names.
            yield pieces if row.presidio is None else 2 * pieces + 2, min(size, PIECE)
    if _OF_ANSWERS & {*row.stages} and isinstance(work, GenerationRequest):
        size = _answer_characters(work, plan, held_tokens)
        yield size // row.window + _PARTS_MAX, (2 if row.presidio is None else 3) * row.window


def _characters(work: Work, stage: JudgedStage) -> int:
    """Return the characters of a request's texts at a stage, with their separators."""
    if isinstance(work, InputWork):
        return sum(map(len, work.own_texts)) if stage == "input" else 0
    return sum(len(text) + 2 for found, text in texts_of(work) if found == stage)


def _answer_characters(request: GenerationRequest, plan: Plan, held_tokens: int) -> int:
    """Return the maximum number of characters in all answers that the plan's hold covers."""
    tokens = request.output_tokens_max
    if tokens is None:
        # Under a ceiling, the plan holds the cost of the longest answer.
        has_ceiling = plan.ceiling_nano_usd is not None
        longest = max(each.longest_output for each in plan.attempts)
        tokens = longest if has_ceiling else held_tokens
    rounds = plan.trace.rounds.rounds_max if plan.trace.rounds else 1
    return request.answers * tokens * _CHARACTERS_PER_TOKEN_MAX * rounds
