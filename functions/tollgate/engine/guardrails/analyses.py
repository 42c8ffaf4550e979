"""Keeps what an analyzer found in the texts of a generation."""

from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from tollgate.engine.guardrails.masks import Masks
from tollgate.engine.guardrails.patterns import Match
from tollgate.routing.guardrail_sections import JudgedStage

Analyze = Callable[[JudgedStage, str], Awaitable[list[Match]]]
"""A function that returns the matches in a text, in order and without overlap."""
_BETWEEN: Final = "\n\n"


class Analysis:
    """The findings of one analyzer, which reads each text once for all attempts."""

    def __init__(self, analyze: Analyze, stages: Collection[JudgedStage], masks: Masks) -> None:
        self._analyze = analyze
        self._stages = stages
        self._masks = masks
        self._found: dict[tuple[JudgedStage, str], list[Match]] = {}
        self._pending: dict[JudgedStage, dict[str, None]] = {}

    def note(self, stage: JudgedStage, text: str) -> str:
        """Note a text for the next run, and return it unchanged."""
        if text and stage in self._stages and (stage, text) not in self._found:
            self._pending.setdefault(stage, {})[text] = None
        return text

    async def run(self) -> None:
        """Find the matches in the noted texts; raise GatewayError if the analyzer fails."""
        while self._pending:
            stage, texts = self._pending.popitem()
            # Joined texts need fewer calls, and a name that is split over two texts is found.
            matches = await self._analyze(stage, _BETWEEN.join(texts))
            place = 0
            for text in texts:
                inside = clip(matches, [(place, place + len(text))])
                moved = [
                    Match(each.begin - place, each.end - place, each.finding) for each in inside
                ]
                self._found[stage, text] = clip(moved, self._masks.find_unmasked(text))
                place += len(text) + len(_BETWEEN)

    def settle(self, stage: JudgedStage, text: str) -> None:
        """Note that nothing is left to find in a masked text."""
        self._found[stage, text] = []

    def found(self, stage: JudgedStage, text: str) -> list[Match]:
        """Return the matches in an analyzed text; raise KeyError for any other text."""
        return self._found[stage, text] if text and stage in self._stages else []


def clip(matches: Sequence[Match], spans: Iterable[tuple[int, int]]) -> list[Match]:
    """Return the parts of matches inside spans; the matches are in order and do not overlap."""
    return list(_parts(matches, spans))


def _parts(matches: Sequence[Match], spans: Iterable[tuple[int, int]]) -> Iterator[Match]:
    for begin, end in spans:
        first = bisect_right(matches, begin, key=attrgetter("end"))
        last = bisect_left(matches, end, lo=first, key=attrgetter("begin"))
        for match in matches[first:last]:
            yield Match(max(begin, match.begin), min(end, match.end), match.finding)
