"""Asks a moderation or chat model of the catalog for a verdict on texts."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.principal import Principal
from tollgate.core.records.generation import BillLine
from tollgate.core.request import GenerationRequest, SystemMessage, UserMessage
from tollgate.core.response import GenerationResponse
from tollgate.core.work.base import Work
from tollgate.core.work.moderation import ModerationRequest
from tollgate.engine.guardrails.patterns import Match
from tollgate.engine.work.inner_calls import InnerCalls
from tollgate.routing.guardrail_sections import GuardSection, JudgeSection

# Maximum number of characters in a piece of a whole text, and the overlap between pieces.
PIECE: Final = 8_000
OVERLAP: Final = 400
_CALLS_AT_ONCE: Final = 8
_FINDINGS_MAX: Final = 16
_MARK_BYTES: Final = 12
_ANY_MARK: Final = "0" * 2 * _MARK_BYTES


class ModelVerdict(Struct, frozen=True, kw_only=True):
    """Findings in texts, empty if the texts pass, and the bill of the model that judged."""

    findings: tuple[str, ...]
    lines: tuple[BillLine, ...]
    matches: tuple[tuple[Match, ...], ...] = ()
    """The findings of an analyzer, for each text."""


class _Analysis(Struct, frozen=True):
    """The places in a moderation result of codec presidio."""

    found: tuple[Match, ...]


class _Result(Struct, frozen=True):
    """The fields of a moderation result that decide the verdict."""

    flagged: bool
    categories: dict[str, bool]


class ModelJudge(Struct, frozen=True, kw_only=True):
    """The model that judges for one guardrail, exempt from the limits of the caller's key."""

    row: GuardSection
    calls: InnerCalls
    principal: Principal
    """The caller, as `unlimited` returns it."""

    async def judge(self, pieces: Sequence[str]) -> ModelVerdict:
        """Return the verdict on all pieces; raise TimeoutError or GatewayError if there is none."""
        slots = asyncio.Semaphore(_CALLS_AT_ONCE)
        mark = self.calls.ids.random_bytes(_MARK_BYTES).hex()
        works = questions(self.row, pieces, mark=mark)
        tasks = [asyncio.create_task(self._ask(work, slots)) for work in works]
        try:
            verdicts = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        findings = dict.fromkeys(name for each in verdicts for name in each.findings)
        return ModelVerdict(
            findings=tuple(findings)[:_FINDINGS_MAX],
            lines=tuple(line for each in verdicts for line in each.lines),
            matches=tuple(matches for each in verdicts for matches in each.matches),
        )

    async def _ask(self, work: Work, slots: asyncio.Semaphore) -> ModelVerdict:
        async with slots:
            answer = await self.calls.answer(work, self.principal, timeout_s=self.row.timeout_s)
        if self.row.judge is not None:
            findings = _read_verdict(answer.response, self.row.judge)
        else:
            findings = _read_results(answer.response)
        if self.row.presidio is None:
            return ModelVerdict(findings=findings, lines=answer.lines)
        results = answer.response.output
        return ModelVerdict(
            findings=findings,
            # An analyzer is mostly your own, and costs nothing.
            lines=tuple(line for line in answer.lines if line.usd_per_million),
            matches=tuple(msgspec.json.decode(each, type=_Analysis).found for each in results),
        )


def unlimited(principal: Principal, judged: Work) -> Principal:
    """Return a caller without the limits on models and the cost of one call, which do not apply to
    models that judge. Prompt policies do.
    """
    return replace(
        principal,
        models=None,
        levels=tuple(replace(level, models=None) for level in principal.levels),
        tier=None,
        cost_max_nano_usd=None,
        work_policies=principal.policies_on_behalf(judged.preferences.prompt_policy),
    )


def questions(row: GuardSection, pieces: Sequence[str], *, mark: str = _ANY_MARK) -> Iterator[Work]:
    """Yield the requests that ask a guardrail's model for its verdict on pieces of text.

    Judged text cannot contain the random `mark`, so it cannot pose as instructions.
    """
    if row.moderation is not None:
        subjects = tuple((Text(text=piece),) for piece in pieces)
        yield ModerationRequest(model=row.moderation.model, subjects=subjects)
    elif row.presidio is not None:
        for piece in pieces:
            yield ModerationRequest(
                model=row.presidio.model,
                subjects=((Text(text=piece),),),
                entities=row.presidio.entities,
                score_min=row.presidio.score_min,
            )
    elif row.judge is not None:
        for piece in pieces:
            yield _question(row.judge, piece, mark)


def _question(judge: JudgeSection, piece: str, mark: str) -> GenerationRequest:
    system: tuple[SystemMessage, ...] = ()
    if judge.prompt is not None:
        system = (SystemMessage(content=(Text(text=judge.prompt),)),)
        piece = f"[begin {mark}]\n{piece}\n[end {mark}]"
    return GenerationRequest(
        model=judge.model,
        messages=(*system, UserMessage(content=(Text(text=piece),))),
        output_tokens_max=judge.output_tokens_max,
        size_bytes=len(piece.encode(errors="replace")) + len((judge.prompt or "").encode()),
    )


def _read_verdict(response: GenerationResponse, judge: JudgeSection) -> tuple[str, ...]:
    """Return a finding if the answer refuses; raise GatewayError if it is not a verdict."""
    words = "".join(part.text for part in response.parts if isinstance(part, Text)).split()
    word = words[0].strip(".,:;!*`\"'").lower() if words else ""
    if response.finish != "stop" or word not in (judge.passes, judge.refuses):
        raise GatewayError(
            ErrorCode.PROVIDER_UNAVAILABLE, f"{judge.model} answered without a verdict."
        )
    return () if word == judge.passes else (judge.refuses,)


def _read_results(response: GenerationResponse) -> tuple[str, ...]:
    """Return the categories of the flagged results."""
    results = [msgspec.json.decode(piece, type=_Result) for piece in response.output]
    found = [
        name
        for result in results
        if result.flagged
        for name in (*(name for name, is_so in result.categories.items() if is_so), "")
    ]
    named = tuple(dict.fromkeys(filter(None, found)))
    return named or (("flagged",) if found else ())


def cut_pieces(text: str) -> list[str]:
    """Cut a whole text into overlapping pieces."""
    step = PIECE - OVERLAP
    return [text[begin : begin + PIECE] for begin in range(0, max(1, len(text) - OVERLAP), step)]
