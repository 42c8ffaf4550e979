"""Filters for the text of an answer, which withhold text that has no verdict yet."""

from abc import abstractmethod
from collections.abc import Collection
from typing import Final, Protocol

from typing_extensions import override

from tollgate.engine.guardrails.analyses import clip
from tollgate.engine.guardrails.judges import PIECE
from tollgate.engine.guardrails.judging import Judging
from tollgate.engine.guardrails.masks import complete_masks
from tollgate.engine.guardrails.patterns import Match, find, release_to
from tollgate.routing.guardrail_sections import GuardSection, JudgedStage, PatternsSection

# Number of characters before the held text that patterns also see.
_CONTEXT: Final = 8
# Divides the window: models see this share of it again, and patterns wait for this much more text.
_SHARE: Final = 4


class TextFilter(Protocol):
    """A filter for one text."""

    @property
    def has_masked(self) -> bool:
        """True if a part of the text was replaced by a mask."""

    async def feed(self, text: str, *, is_last: bool = False) -> str:
        """Take the next piece, and return the text that may be passed on; raise Blocked."""


class _FindingFilter:
    """A filter that withholds the window in which a match may begin."""

    def __init__(
        self,
        judging: Judging,
        name: str,
        row: GuardSection,
        stage: JudgedStage,
        *,
        step: int,
        context_size: int,
    ) -> None:
        self._step = step
        self._context_size = context_size
        self._judging = judging
        self._name = name
        self._window = row.window
        self._stage = stage
        self._context = ""
        self._held = ""
        # Length at which the held text is next searched, because a search per piece would cost too
        # much. The length doubles while no text can be passed on, as in a long run of base64.
        self._search_at = self._step
        self.has_masked = False

    async def feed(self, text: str, *, is_last: bool = False) -> str:
        """Take the next piece, and return the text that may be passed on; raise Blocked."""
        self._held += text
        if not self._held or (not is_last and len(self._held) < self._search_at):
            return ""
        known = len(self._context)
        whole = self._context + self._held
        matches = await self._search(whole, known)
        end = len(whole)
        if not is_last:
            end = max(known, self._release_to(whole, matches))
        due = [match for match in matches if match.end <= end]
        self.has_masked |= bool(due) and self._judging.rows[self._name].action == "mask"
        released = self._judging.apply(
            self._name, self._stage, whole[:end], due, counted=end > known
        )[known:]
        self._context = whole[max(0, end - self._context_size) : end]
        self._held = whole[end:]
        self._search_at = self._step
        if end == known:
            self._search_at = 2 * len(self._held)
        return released

    @abstractmethod
    async def _search(self, whole: str, known: int) -> list[Match]:
        """Return the matches in a text, of which `known` characters were passed on."""

    @abstractmethod
    def _release_to(self, whole: str, matches: Collection[Match]) -> int:
        """Return the length of the part in which no match can still begin."""


class PatternFilter(_FindingFilter):
    """A filter by patterns."""

    def __init__(
        self,
        judging: Judging,
        name: str,
        *,
        row: GuardSection,
        patterns: PatternsSection,
        stage: JudgedStage,
    ) -> None:
        step = row.window + row.window // _SHARE
        super().__init__(judging, name, row, stage, step=step, context_size=_CONTEXT)
        self._patterns = patterns

    @override
    async def _search(self, whole: str, known: int) -> list[Match]:
        found = find(whole, self._patterns.finds, base64=self._patterns.base64)
        return [match for match in found if match.begin >= known]

    @override
    def _release_to(self, whole: str, matches: Collection[Match]) -> int:
        return release_to(whole, matches, self._window, base64=self._patterns.base64)


class AnalyzerFilter(_FindingFilter):
    """A filter by an analyzer, which gets one window at a time, with the text around it."""

    def __init__(self, judging: Judging, name: str, row: GuardSection, stage: JudgedStage) -> None:
        context_size = row.window // _SHARE
        super().__init__(judging, name, row, stage, step=2 * row.window, context_size=context_size)

    @override
    async def _search(self, whole: str, known: int) -> list[Match]:
        matches = await self._judging.analyze(self._name, self._stage, whole)
        spans = (
            (max(known, begin), end) for begin, end in self._judging.masks.find_unmasked(whole)
        )
        return clip(matches, spans)

    @override
    def _release_to(self, whole: str, matches: Collection[Match]) -> int:
        limit = len(whole) - self._window
        growing = (
            each.begin
            for each in matches
            if each.begin < limit < each.end or each.end == len(whole)
        )
        return min(limit, *growing, len(whole))


class ModelFilter:
    """A filter by a model, which withholds each window until the model has judged it."""

    has_masked = False

    def __init__(self, judging: Judging, name: str, row: GuardSection, stage: JudgedStage) -> None:
        self._judging = judging
        self._name = name
        self._window = row.window
        self._stage = stage
        self._context = ""
        self._held = ""

    async def feed(self, text: str, *, is_last: bool = False) -> str:
        """Take the next piece, and return the approved text; raise Blocked, or GatewayError if the
        model cannot judge.
        """
        self._held += text
        if not self._held or (not is_last and len(self._held) < self._window):
            return ""
        whole = self._context + self._held
        step = PIECE - len(self._context)
        pieces = [whole[begin : begin + PIECE] for begin in range(0, len(whole), step)]
        await self._judging.judge(self._name, self._stage, pieces)
        released, self._held = self._held, ""
        self._context = whole[-(self._window // _SHARE) :]
        return released


class RestoringFilter:
    """A filter that puts the originals in place of masks."""

    has_masked = False

    def __init__(self, judging: Judging) -> None:
        self._masks = judging.masks
        self._held = ""

    async def feed(self, text: str, *, is_last: bool = False) -> str:
        """Take the next piece, and return the text that may be passed on."""
        whole = self._held + text
        end = len(whole) if is_last else complete_masks(whole)
        self._held = whole[end:]
        return self._masks.restore(whole[:end])


def filters_for(judging: Judging, stage: JudgedStage) -> list[TextFilter]:
    """Return the filters of one text: patterns, analyzers, models, and masks restored."""
    filters: list[TextFilter] = [
        PatternFilter(judging, name, row=row, patterns=patterns, stage=stage)
        for name, row, patterns in judging.patterns_at(stage)
    ]
    filters += [
        AnalyzerFilter(judging, name, row, stage) for name, row in judging.analyzers_at(stage)
    ]
    filters += [ModelFilter(judging, name, row, stage) for name, row in judging.models_at(stage)]
    if judging.masks:
        filters.append(RestoringFilter(judging))
    return filters


async def feed_all(filters: list[TextFilter], text: str, *, is_last: bool = False) -> str:
    """Send a piece of text through filters, and return the text that may be passed on."""
    for each in filters:
        text = await each.feed(text, is_last=is_last)
    return text
