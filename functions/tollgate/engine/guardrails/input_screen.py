"""Judges and masks the texts of a request before a provider gets them."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from tollgate.core.content import ResultContent, Text
from tollgate.core.request import GenerationRequest
from tollgate.core.work.base import InputWork, Work
from tollgate.engine.guardrails.judges import cut_pieces
from tollgate.engine.guardrails.judging import AnswerRefused, Blocked, Judging
from tollgate.engine.guardrails.texts import (
    Joint,
    change_arguments,
    change_texts,
    joints_of,
    names_of,
)
from tollgate.engine.side_thread import Computations
from tollgate.routing.guardrail_sections import JudgedStage

_Text = tuple[JudgedStage, str]


class InputScreen:
    """Screen for the input of one generation; each text is judged once for all attempts."""

    def __init__(self, judging: Judging, computations: Computations) -> None:
        self._judging = judging
        self._computations = computations
        self._seen: set[_Text] = set()
        self._seen_joints: set[Joint] = set()
        self._seen_names: set[str] = set()
        self._meanwhile: list[asyncio.Task[None]] = []
        # The task that calls the provider during the judging; None once that task waits for the
        # verdicts.
        self._calling: asyncio.Task[Any] | None = asyncio.current_task()
        self._failure: BaseException | None = None

    async def admit(self, work: Work) -> Work:
        """Return the work with masks applied, in the form that providers may receive.

        Raises RequestError for a refused text, and AnswerRefused if the answer has already begun.
        """
        is_first = not self._seen
        try:
            screen = partial(self._screen, work)
            screened, new_texts = await self._computations.run(screen)
            for name in self._judging.analyses:
                screened, new_texts = await self._analyze(name, screened, new_texts)
            await self._judge(new_texts, is_first=is_first)
        except Blocked as blocked:
            if self._judging.is_committed:
                raise AnswerRefused from blocked
            raise blocked.error from blocked
        return screened

    async def admit_result(self, content: tuple[ResultContent, ...]) -> tuple[ResultContent, ...]:
        """Return the result of a gateway tool with masks applied; raise AnswerRefused."""
        changed: list[ResultContent] = []
        for part in content:
            if isinstance(part, Text) and part.text:
                try:
                    text = self._judging.screen("tool_results", part.text, of_request=True)
                    for name, _ in self._judging.analyzers_at("tool_results"):
                        self._judging.analyses[name].note("tool_results", text)
                        await self._judging.analyses[name].run()
                        text = self._judging.apply_found(
                            name, "tool_results", text, of_request=True
                        )
                    await self._judge([("tool_results", text)], is_first=False)
                except Blocked as blocked:
                    raise AnswerRefused from blocked
                self._seen.add(("tool_results", text))
                part = replace(part, text=text)
            changed.append(part)
        return tuple(changed)

    async def settle(self) -> None:
        """Wait for verdicts that are reached while the provider is called; raise RequestError."""
        self._calling = None
        while self._meanwhile:
            try:
                await self._meanwhile[-1]
            except Blocked as blocked:
                raise blocked.error from blocked
            self._meanwhile.pop()

    def take_failure(self) -> BaseException | None:
        """Return the reason why the call of the provider was interrupted; None if it was not."""
        failure, calling = self._failure, asyncio.current_task()
        if failure is None or (calling is not None and calling.uncancel()):
            return None
        return failure.error if isinstance(failure, Blocked) else failure

    def _interrupt(self, task: asyncio.Task[None]) -> None:
        """Cancel the call to the provider after a refusal, which makes its answer useless."""
        failure = None if task.cancelled() else task.exception()
        if failure is not None and self._calling is not None and self._failure is None:
            self._failure = failure
            self._calling.cancel()

    async def aclose(self) -> None:
        """Cancel the verdicts that are no longer needed."""
        self._calling = None
        for task in self._meanwhile:
            task.cancel()
        await asyncio.gather(*self._meanwhile, return_exceptions=True)

    def _screen(self, work: Work) -> tuple[Work, list[_Text]]:
        """Return the work with all patterns applied, and its texts that are not judged yet."""
        new_texts: list[_Text] = []
        maskable = not isinstance(work, InputWork)

        def change(stage: JudgedStage, text: str) -> str:
            if not text:
                return text
            is_new = (stage, text) not in self._seen
            if is_new:
                self._seen.add((stage, text))
            # Once an answer has begun, its text is judged on delivery, so only tool results count
            # here.
            counted = is_new and (stage == "tool_results" or not self._judging.is_committed)
            screened = self._judging.screen(
                stage, text, of_request=True, counted=counted, maskable=maskable
            )
            if counted:
                new_texts.append((stage, screened))
            return screened

        if not isinstance(work, InputWork):
            screened = change_texts(work, change)
            self._screen_rest(screened)
            return screened, new_texts
        for text in work.own_texts:
            change("input", text)
        return work, new_texts

    def _screen_rest(self, request: GenerationRequest) -> None:
        """Refuse matches in what cannot be masked; each is judged once."""
        for joint in joints_of(request):
            if joint not in self._seen_joints:
                self._seen_joints.add(joint)
                self._judging.screen_joint(joint)
        for name in names_of(request):
            if name not in self._seen_names:
                self._seen_names.add(name)
                self._judging.screen("input", name, of_request=True, maskable=False)

    async def _analyze(
        self, name: str, work: Work, new_texts: Sequence[_Text]
    ) -> tuple[Work, list[_Text]]:
        """Return the work and its new texts after an analyzer; raise Blocked."""
        analysis, new = self._judging.analyses[name], frozenset(new_texts)
        maskable = not isinstance(work, InputWork)

        def note(stage: JudgedStage, text: str) -> str:
            return _change_within(stage, text, partial(analysis.note, stage))

        def change(stage: JudgedStage, text: str) -> str:
            apply = partial(
                self._judging.apply_found,
                name,
                stage,
                of_request=True,
                counted=(stage, text) in new,
                maskable=maskable,
            )
            return _change_within(stage, text, apply)

        if isinstance(work, InputWork):
            for text in work.own_texts:
                note("input", text)
            await analysis.run()
            for text in work.own_texts:
                change("input", text)
            return work, list(new_texts)
        await self._computations.run(partial(change_texts, work, note))
        await analysis.run()
        screened = await self._computations.run(partial(change_texts, work, change))
        await self._analyze_rest(name, screened)
        return screened, [(stage, change(stage, text)) for stage, text in new_texts]

    async def _analyze_rest(self, name: str, request: GenerationRequest) -> None:
        """Refuse what an analyzer finds in texts that cannot be masked."""
        analysis, row = self._judging.analyses[name], self._judging.rows[name]
        joints, names = list(joints_of(request)), list(names_of(request))
        for joint in joints:
            analysis.note(joint.stage, joint.text)
        for each in names:
            analysis.note("input", each)
        await analysis.run()
        for joint in joints:
            found = analysis.found(joint.stage, joint.text)
            self._judging.refuse_split(name, row, joint, found)
        for each in names:
            self._judging.apply_found(name, "input", each, of_request=True, maskable=False)

    async def _judge(self, new_texts: Sequence[_Text], *, is_first: bool) -> None:
        by_stage = itemgetter(0)
        for stage, texts in groupby(sorted(new_texts, key=by_stage), key=by_stage):
            pieces = cut_pieces("\n\n".join(text for _, text in texts))
            for name, row in self._judging.models_at(stage):
                judging = self._judging.judge(name, stage, pieces)
                if row.parallel and is_first:
                    task = asyncio.create_task(judging)
                    task.add_done_callback(self._interrupt)
                    self._meanwhile.append(task)
                else:
                    await judging


def _change_within(stage: JudgedStage, text: str, change: Callable[[str], str]) -> str:
    """Return a text after a change, which arguments of calls get in each field of their JSON.

    An analyzer may find places that begin in one field and end in another, and a mask there would
    leave invalid JSON.
    """
    if stage == "tool_arguments":
        return change_arguments(text, change, change_whole=str)
    return change(text)
