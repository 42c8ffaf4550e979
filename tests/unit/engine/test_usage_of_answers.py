"""The usage of answers of chat: what is estimated without a report, and the most that is believed.

Keeps C65, C66.
"""

import pytest
from msgspec.structs import replace

from tests.unit.ingress.samples import chat_completions
from tests.unit.routing.catalogs import catalog, plan_of, principal
from tollgate.core.content import InlineMedia, MadeImage, Text
from tollgate.core.events import Ended, PartDelta, PartEnd, PartStart, StreamEvent, UsageReported
from tollgate.core.usage import Usage
from tollgate.engine.usage.stream_usage import StreamUsage
from tollgate.engine.usage.usage_bound import UsageBound
from tollgate.routing.planning.plan import Attempt

PICTURE = MadeImage(source=InlineMedia(media_type="image/png", base64=""))
ENDED = Ended(finish="stop")


def an_attempt() -> Attempt:
    body = b'{"model": "acme/large", "messages": [{"role": "user", "content": "Hi"}]}'
    plan = plan_of(catalog(), chat_completions().parse(body).request, principal=principal())
    return plan.attempts[0]


def said(text: str) -> tuple[StreamEvent, ...]:
    return (PartStart(index=0, part=Text(text="")), PartDelta(index=0, text=text))


def drawn(count: int) -> tuple[StreamEvent, ...]:
    shown = ((PartStart(index=at, part=PICTURE), PartEnd(index=at)) for at in range(count))
    return tuple(event for both in shown for event in both)


def reported(**counts: int) -> UsageReported:
    return UsageReported(usage=Usage(**counts), raw=None)


def measured(
    *events: StreamEvent, choices: int = 1, echoed_bytes: int = 0, limit: int | None = None
) -> tuple[Usage, str]:
    account = StreamUsage(choices)
    for event in events:
        account.observe(event)
    return account.measure(
        an_attempt(),
        estimated_input_tokens=2,
        prompt_tokens_max=1_000,
        output_tokens_max=limit,
        echoed_bytes=echoed_bytes,
    )


@pytest.mark.parametrize(
    ("pictures", "choices", "count", "images", "source"),
    [
        (3, 1, None, 3, "provider"),
        (3, 1, 3, 3, "provider"),
        (3, 1, 9, 3, "bounded"),
        # A picture of a choice may not be a part of its answer.
        (0, 1, 1, 1, "provider"),
        (0, 1, 2, 1, "bounded"),
        (0, 2, 2, 2, "provider"),
        (1, 2, 2, 2, "provider"),
    ],
)
def test_c65_c81_as_many_pictures_are_billed_as_were_delivered(
    pictures: int, choices: int, count: int | None, images: int, source: str
) -> None:
    counts = {"uncached_input_tokens": 2, "output_tokens": 5}
    report = reported(**counts) if count is None else reported(**counts, images=count)
    usage, found = measured(*drawn(pictures), report, *([ENDED] * choices), choices=choices)
    assert (usage.images, found) == (images, source)


@pytest.mark.parametrize(
    ("events", "echoed_bytes", "output_tokens", "source"),
    [
        ((), 0, None, "none"),
        ((reported(uncached_input_tokens=2, output_tokens=1),), 0, 1, "provider"),
        # A report of the prompt alone, before anything was delivered.
        ((reported(uncached_input_tokens=2),), 0, None, "none"),
        ((*said("a" * 17), ENDED), 0, 5, "estimated"),
        # Bytes are counted, and those of an echoed prompt are not.
        ((*said("ä" * 8), ENDED), 0, 4, "estimated"),
        ((*said("a" * 17), ENDED), 9, 2, "estimated"),
        ((*said("a" * 17), ENDED), 90, 0, "estimated"),
        # An early report counts what was made until then.
        ((reported(output_tokens=1), *said("a" * 40)), 0, 10, "estimated"),
        ((reported(output_tokens=20), *said("a" * 40)), 0, 20, "estimated"),
        ((reported(output_tokens=1), *said("a" * 40), ENDED), 0, 1, "estimated"),
        ((*drawn(2), ENDED), 0, 2 * 1_290, "estimated"),
        (drawn(2), 0, 2 * 1_290, "estimated"),
    ],
)
def test_c66_what_was_delivered_without_a_report_is_estimated(
    events: tuple[StreamEvent, ...], echoed_bytes: int, output_tokens: int | None, source: str
) -> None:
    usage, found = measured(*events, echoed_bytes=echoed_bytes)
    assert found == source
    assert source == "none" or usage.output_tokens == output_tokens


@pytest.mark.parametrize(
    ("choices", "reasons", "limit", "most"),
    [
        (1, False, None, 1_024),
        (2, False, None, 2_048),
        (2, True, None, 2 * (1_024 + 500)),
        # A caller's limit is one of shown and hidden output, with an eighth and 64 tokens more.
        (1, False, 80, 80 + 10 + 64),
        (1, True, 80, 80 + 10 + 64),
        (2, True, 80, 2 * (80 + 10 + 64)),
        (1, True, 100_000, 1_024 + 500),
    ],
)
def test_c65_output_is_believed_up_to_the_callers_limit_and_reasoning_up_to_the_models(
    choices: int, reasons: bool, limit: int | None, most: int
) -> None:
    attempt = an_attempt()
    attempt = replace(attempt, target=replace(attempt.target, output_tokens_max=500))
    bound = UsageBound.of(
        attempt,
        choices=choices,
        prompt_tokens_max=1_000,
        output_tokens_max=limit,
        shown_bytes=0,
        reasons=reasons,
    )
    assert bound.output_tokens == most
    assert bound.input_tokens == 1_000 * choices
