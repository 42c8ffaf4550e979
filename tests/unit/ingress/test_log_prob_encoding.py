"""Log probabilities are encoded once, and one token at a time.

Keeps C9.
"""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, model_serializer
from typing_extensions import override

from tests.unit.ingress import responses_samples, samples
from tollgate.core.content import Refusal, Text
from tollgate.core.events import Ended, LogProbs, PartEnd, PartNote, PartStart, Started
from tollgate.core.response import GenerationResponse
from tollgate.core.usage import Usage
from tollgate.ingress.base import Renderer


class Watched(dict[str, Any]):
    """An entry that logs when it is read, and when its JSON is written."""

    def __init__(self, number: int, log: list[str]) -> None:
        super().__init__(token="Hi")
        self._number, self._log = number, log

    @override
    def get(self, name: str, default: Any = None) -> Any:
        if name != "logprob":
            return super().get(name, default)
        self._log.append(f"read {self._number}")
        return Probability(number=self._number, log=self._log)


class Probability(BaseModel):
    number: int
    log: Any

    @model_serializer
    def write(self) -> float:
        self.log.append(f"written {self.number}")
        return -0.5


def streamed(renderer: Renderer, part: Text | Refusal, note: LogProbs) -> None:
    said = (Started(), PartStart(index=0, part=part), PartNote(index=0, note=note))
    for event in (*said, PartEnd(index=0), Ended(finish="stop")):
        renderer.feed(event)
    renderer.close(samples.record())


def whole(renderer: Renderer, part: Text | Refusal, note: LogProbs) -> None:
    response = GenerationResponse(
        started=Started(),
        parts=(part,),
        notes={0: (note,)},
        usage=Usage(),
        finish="stop",
        raw_finish=None,
        stop_sequence=None,
    )
    renderer.whole([response], samples.record())


@pytest.mark.parametrize("reply", [streamed, whole])
@pytest.mark.parametrize(
    ("renderer", "part"),
    [
        (samples.renderer, Text(text="")),
        (samples.renderer, Refusal(text="")),
        (responses_samples.renderer, Text(text="")),
    ],
)
def test_c9_each_log_probability_is_written_once_before_the_next_is_read(
    renderer: Callable[[], Renderer],
    part: Text | Refusal,
    reply: Callable[[Renderer, Text | Refusal, LogProbs], None],
) -> None:
    log: list[str] = []
    note = LogProbs(entries=tuple(Watched(number, log) for number in range(3)))
    reply(renderer(), part, note)
    assert log == [f"{step} {number}" for number in range(3) for step in ("read", "written")]
