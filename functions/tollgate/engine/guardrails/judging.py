"""Judges texts of one generation, and notes each judgement in the generation's record and bill."""

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain, count
from typing import Final, get_args

from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, GatewayError, RequestError
from tollgate.core.records.generation import (
    BillLine,
    Fee,
    JudgementRecord,
    JudgementVerdict,
    total_nano_usd,
)
from tollgate.engine.guardrails.analyses import Analysis
from tollgate.engine.guardrails.judges import (
    OVERLAP,
    PIECE,
    ModelJudge,
    ModelVerdict,
    cut_pieces,
)
from tollgate.engine.guardrails.masks import Masks
from tollgate.engine.guardrails.patterns import Match, find, merge
from tollgate.engine.guardrails.texts import Joint, change_arguments
from tollgate.engine.meter import Meter
from tollgate.routing.guardrail_sections import GuardSection, JudgedStage, PatternsSection

_STRICTEST_LAST: Final[tuple[str, ...]] = get_args(JudgementVerdict)
_PIECES_PER_RATE: Final = Decimal(1_000_000)
_FINDINGS_MAX: Final = 16
_WORDS: Final[Mapping[JudgedStage, str]] = {
    "input": "input",
    "output": "answer",
    "tool_arguments": "arguments of a tool call",
    "tool_results": "result of a tool",
}


class Blocked(Exception):
    """Raised when a guardrail refuses a text."""

    def __init__(self, guardrail: str, stage: JudgedStage, findings: Sequence[str]) -> None:
        super().__init__(guardrail)
        self.error = RequestError(
            ErrorCode.CONTENT_FILTER,
            f"The guardrail {guardrail} refused the {_WORDS[stage]}: {', '.join(findings)}.",
        )


class AnswerRefused(Exception):
    """Raised when a guardrail refuses a part of an answer, which ends with `content_filter`."""


class Judging:
    """Guardrails of one generation, with their judgements so far."""

    def __init__(
        self,
        rows: Mapping[str, GuardSection],
        judges: Mapping[str, ModelJudge],
        meter: Meter,
        clock: Clock,
    ) -> None:
        self.rows = rows
        self.masks = Masks()
        self._judges = judges
        self._meter = meter
        self._clock = clock
        self.analyses = {
            name: Analysis(partial(self.analyze, name), row.stages, self.masks)
            for name, row in rows.items()
            if row.presidio is not None
        }

    def patterns_at(self, stage: JudgedStage) -> list[tuple[str, GuardSection, PatternsSection]]:
        """Return the pattern guardrails that judge a stage."""
        return [
            (name, row, row.patterns)
            for name, row in self.rows.items()
            if stage in row.stages and row.patterns is not None
        ]

    def models_at(self, stage: JudgedStage) -> list[tuple[str, GuardSection]]:
        """Return the model guardrails that judge a stage."""
        return [
            (name, row)
            for name, row in self.rows.items()
            if stage in row.stages and row.kind in ("moderation", "judge")
        ]

    def analyzers_at(self, stage: JudgedStage) -> list[tuple[str, GuardSection]]:
        """Return the guardrails whose analyzer finds places in the texts of a stage."""
        return [
            (name, row)
            for name, row in self.rows.items()
            if stage in row.stages and row.presidio is not None
        ]

    @property
    def is_committed(self) -> bool:
        """True if the answer has begun; a refusal then ends it."""
        return self._meter.committed

    def screen(
        self,
        stage: JudgedStage,
        text: str,
        *,
        of_request: bool,
        counted: bool = True,
        maskable: bool = True,
    ) -> str:
        """Return a whole text with all patterns applied, masked or unchanged; raise Blocked.

        The masks of a request have numbers, so the original text can be restored. Text that is not
        `counted` was judged earlier and is only masked. Text that is not `maskable` is refused
        instead.
        """
        for name, row, patterns in self.patterns_at(stage):
            if counted or row.action == "mask":
                matches = find(text, patterns.finds, base64=patterns.base64)
                if matches and not maskable and row.action == "mask":
                    raise self._block(name, stage, matches)
                text = self.apply(
                    name, stage, text, matches, of_request=of_request, counted=counted
                )
        return text

    def screen_joint(self, joint: Joint) -> None:
        """Apply all patterns to a match that is split over two texts; raise Blocked.

        Such a match cannot be masked, so it is refused instead.
        """
        for name, row, patterns in self.patterns_at(joint.stage):
            found = find(joint.text, patterns.finds, base64=patterns.base64)
            self.refuse_split(name, row, joint, found)

    def refuse_split(
        self, name: str, row: GuardSection, joint: Joint, found: Collection[Match]
    ) -> None:
        """Raise Blocked for a match that is split over two texts, unless the row only flags."""
        matches = [each for each in found if each.begin < joint.place < each.end]
        if matches and row.action != "flag":
            raise self._block(name, joint.stage, matches)
        if matches:
            self._note(name, joint.stage, "flag", _findings(matches))

    @property
    def holds_answers(self) -> bool:
        """True if answers are judged or changed."""
        stages = {stage for row in self.rows.values() for stage in row.stages}
        return bool(self.masks) or bool(stages & {"output", "tool_arguments"})

    async def judge_arguments(self, arguments: str, *, is_text: bool, restores: bool = True) -> str:
        """Return the whole arguments of a call after all guardrails, with masks restored unless a
        tool of the gateway gets them; raise Blocked.
        """
        screen = partial(self.screen, "tool_arguments", of_request=False)
        if arguments:
            arguments = screen(arguments) if is_text else change_arguments(arguments, screen)
        for name, _ in self.analyzers_at("tool_arguments"):
            note = partial(self.analyses[name].note, "tool_arguments")
            change_arguments(arguments, note, change_whole=str)
            await self.analyses[name].run()
            apply = partial(self.apply_found, name, "tool_arguments", of_request=False)
            arguments = change_arguments(arguments, apply, change_whole=str)
        for name, _ in self.models_at("tool_arguments"):
            if arguments:
                await self.judge(name, "tool_arguments", cut_pieces(arguments))
        if not restores or not self.masks:
            return arguments
        if is_text:
            return self.masks.restore(arguments)
        return change_arguments(arguments, self.masks.restore)

    def apply(
        self,
        name: str,
        stage: JudgedStage,
        text: str,
        matches: Collection[Match],
        *,
        of_request: bool = False,
        counted: bool = True,
    ) -> str:
        """Return a text after a guardrail's action on its matches; raise Blocked."""
        row = self.rows[name]
        if matches and row.action == "block":
            raise self._block(name, stage, matches)
        if counted:
            judged = 0 if row.presidio else 1
            verdict = row.action if matches else "pass"
            self._note(name, stage, verdict, _findings(matches), pieces=judged)
        if row.action != "mask" or not matches:
            return text
        pieces: list[str] = []
        place = 0
        for match in matches:
            pieces.append(text[place : match.begin])
            if of_request:
                original = text[match.begin : match.end]
                pieces.append(self.masks.mask(match.finding, original, restores=row.restores))
            else:
                pieces.append(f"[{match.finding}]")
            place = match.end
        return "".join((*pieces, text[place:]))

    def apply_found(
        self,
        name: str,
        stage: JudgedStage,
        text: str,
        *,
        of_request: bool,
        counted: bool = True,
        maskable: bool = True,
    ) -> str:
        """Return a text after the action on what an analyzer found; raise Blocked.

        Raises GatewayError for a text that was not analyzed. See `screen` for the options.
        """
        analysis, action = self.analyses[name], self.rows[name].action
        if not counted and action != "mask":
            return text
        try:
            matches = analysis.found(stage, text)
        except KeyError as missing:
            raise unjudged(name) from missing
        if not matches:
            return text
        if not maskable and action == "mask":
            raise self._block(name, stage, matches)
        text = self.apply(name, stage, text, matches, of_request=of_request, counted=counted)
        analysis.settle(stage, text)
        return text

    async def analyze(self, name: str, stage: JudgedStage, text: str) -> list[Match]:
        """Return what an analyzer finds in a text, in order and without overlap; raise
        GatewayError if the analyzer fails.
        """
        pieces = cut_pieces(text)
        found = (await self._ask(name, stage, pieces)).matches
        if len(found) != len(pieces):
            raise unjudged(name)
        return merge(
            Match(place + each.begin, place + each.end, each.finding)
            for place, matches in zip(count(0, PIECE - OVERLAP), found, strict=False)
            for each in matches
        )

    def _block(self, name: str, stage: JudgedStage, matches: Collection[Match]) -> Blocked:
        self._note(name, stage, "block", _findings(matches))
        return Blocked(name, stage, _findings(matches))

    async def judge(self, name: str, stage: JudgedStage, pieces: Sequence[str]) -> None:
        """Let a guardrail's model judge pieces of text; raise Blocked, or GatewayError if the model
        cannot judge.
        """
        findings = (await self._ask(name, stage, pieces)).findings
        if not findings:
            return
        verdict: JudgementVerdict = "block" if self.rows[name].action == "block" else "flag"
        self._note(name, stage, verdict, findings, pieces=0)
        if verdict == "block":
            raise Blocked(name, stage, findings)

    async def _ask(self, name: str, stage: JudgedStage, pieces: Sequence[str]) -> ModelVerdict:
        """Return the verdict of a guardrail's model, and note its cost; raise GatewayError if the
        model cannot judge.
        """
        began_s = self._clock.monotonic_s()
        verdict: JudgementVerdict = "failed"
        lines: tuple[BillLine, ...] = ()
        try:
            judged = await self._judges[name].judge(pieces)
            verdict, lines = "pass", judged.lines
        except (GatewayError, TimeoutError, ValueError) as failure:
            raise unjudged(name) from failure
        finally:
            duration_ms = round((self._clock.monotonic_s() - began_s) * 1000)
            self._note(
                name, stage, verdict, (), lines=lines, pieces=len(pieces), duration_ms=duration_ms
            )
        return judged

    def _note(
        self,
        name: str,
        stage: JudgedStage,
        verdict: JudgementVerdict,
        findings: tuple[str, ...],
        *,
        lines: tuple[BillLine, ...] = (),
        pieces: int = 1,
        duration_ms: int = 0,
    ) -> None:
        for line in lines:
            self._meter.charge(
                Fee(
                    item=f"guardrail_{line.item}",
                    quantity=line.quantity,
                    usd_each=line.usd_per_million / _PIECES_PER_RATE,
                )
            )
        before = self._meter.judgements.get((name, stage))
        if before is not None:
            verdict = max(verdict, before.verdict, key=_STRICTEST_LAST.index)
            findings = tuple(dict.fromkeys(chain(before.findings, findings)))[:_FINDINGS_MAX]
        self._meter.judgements[name, stage] = JudgementRecord(
            guardrail=name,
            stage=stage,
            verdict=verdict,
            findings=findings,
            pieces=pieces + (before.pieces if before else 0),
            duration_ms=duration_ms + (before.duration_ms if before else 0),
            cost_nano_usd=total_nano_usd(lines) + (before.cost_nano_usd if before else 0),
        )


def _findings(matches: Collection[Match]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match.finding for match in matches))


def unjudged(name: str) -> GatewayError:
    """Return the error for a guardrail without a verdict; the unjudged text is not passed on."""
    return GatewayError(
        ErrorCode.PROVIDER_UNAVAILABLE,
        f"The guardrail {name} could not judge, so the request is refused.",
    )
