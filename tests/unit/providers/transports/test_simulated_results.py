"""C81: the simulator's results of work that is no conversation."""

from collections.abc import Sequence

import pytest
from pydantic import JsonValue

from tests.unit.ingress.media_samples import PNG, b64
from tests.unit.providers.transports.test_simulator import CountingClock
from tollgate.core.content import Image, InlineMedia, MediaUrl, Text
from tollgate.core.work.base import WorkResult
from tollgate.core.work.moderation import ModerationRequest, Subject
from tollgate.providers.ports.base import Target, Timeouts
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.providers.simulator.simulator import Simulator

TARGET = Target(provider="test", model="test/moderate", upstream_model="moderate")
HARMLESS = Image(source=InlineMedia(media_type="image/png", base64=b64(PNG)))
HARMFUL = Image(source=InlineMedia(media_type="image/png", base64=b64(PNG + b"harm")))
FAR = Image(source=MediaUrl(url="https://example.com/harm.png"))


async def judged(*subjects: Subject) -> Sequence[JsonValue]:
    work = ModerationRequest(model="test/moderate", subjects=subjects)
    codec = WIRE_FORMATS["openai_chat"].batch_codecs["moderation"]()
    (batch,) = codec.split(work, TARGET)
    async with Simulator(CountingClock()).open(codec.encode(batch, TARGET), Timeouts()) as frames:
        async for together in frames:
            result: WorkResult = codec.decode(together[0], work, TARGET)
    return [JUDGEMENTS[piece] for piece in result.pieces]


def judgement(*, flagged: bool, of: str) -> bytes:
    truth = "true" if flagged else "false"
    return (
        f'{{"flagged":{truth},"categories":{{"violence":{truth}}},'
        f'"category_scores":{{"violence":{float(flagged)}}},'
        f'"category_applied_input_types":{{"violence":{of}}}}}'
    ).encode()


JUDGEMENTS: dict[bytes, JsonValue] = {
    judgement(flagged=flagged, of=of): [flagged, of]
    for flagged in (True, False)
    for of in ('["text"]', '["image"]', '["text","image"]')
}


async def test_each_text_with_the_word_is_flagged() -> None:
    texts = [(Text(text=text),) for text in ("do no Harm", "harmless")]
    assert await judged(*texts) == [[True, '["text"]'], [False, '["text"]']]


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ((HARMFUL,), [True, '["image"]']),
        ((HARMLESS,), [False, '["image"]']),
        ((FAR,), [True, '["image"]']),
        ((Text(text="fine"), HARMLESS), [False, '["text","image"]']),
        ((Text(text="harm"), HARMLESS), [True, '["text","image"]']),
    ],
)
async def test_parts_have_one_judgement(parts: Subject, verdict: JsonValue) -> None:
    assert await judged(parts) == [verdict]
