"""The usage of work on inputs: what is due without a report, and the most that is believed.

Keeps C65, C66, C81.
"""

import pytest

from tests.unit.ingress.samples import chat_completions
from tests.unit.routing.catalogs import catalog, plan_of, principal
from tollgate.core.events import Ended, Output, Partial, Started, StreamEvent, UsageReported
from tollgate.core.usage import Units, Usage
from tollgate.engine.usage.stream_usage import StreamUsage
from tollgate.engine.usage.usage_bound import InputBound, UsageBound
from tollgate.routing.planning.plan import Attempt

INPUTS = InputBound(
    tokens_max=2,
    units=Units(output_tokens=1, images=2, search_units=3),
    units_max=Units(
        output_tokens=3, images=4, search_units=5, audio_seconds=6, characters=7, media_tokens=8
    ),
    charged=frozenset({"images"}),
    likely_output_tokens=lambda output_bytes: 1,
    by_medium=lambda likely: likely,
)
REPORTED = Usage(uncached_input_tokens=1, output_tokens=2)
# Of what is not charged nothing is estimated.
LIKELY = Usage(uncached_input_tokens=2, output_tokens=1, images=2)


def an_attempt() -> Attempt:
    body = b'{"model": "acme/large", "messages": [{"role": "user", "content": "Hi"}]}'
    plan = plan_of(catalog(), chat_completions().parse(body).request, principal=principal())
    return plan.attempts[0]


@pytest.mark.parametrize(
    ("events", "due"),
    [
        ((), (Usage(), "none")),
        ((Started(),), (Usage(), "none")),
        ((UsageReported(usage=REPORTED, raw=None),), (REPORTED, "provider")),
        ((Partial(piece=b"{}"),), (LIKELY, "estimated")),
        ((Output(pieces=(b"{}",)),), (LIKELY, "estimated")),
        ((Output(pieces=(b"{}",)), Ended(finish="stop")), (LIKELY, "estimated")),
    ],
)
def test_c66_c81_a_result_is_due_as_a_whole_once_a_piece_of_it_is_there(
    events: tuple[StreamEvent, ...], due: tuple[Usage, str]
) -> None:
    account = StreamUsage(1)
    for event in events:
        account.observe(event)
    measured = account.measure(
        an_attempt(),
        estimated_input_tokens=2,
        prompt_tokens_max=0,
        output_tokens_max=None,
        inputs=INPUTS,
    )
    assert measured == due


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("uncached_input_tokens", 2),
        ("output_tokens", 3),
        # No provider searches the web for an embedding.
        ("web_searches", 0),
        ("images", 4),
        ("search_units", 5),
        ("audio_seconds", 6),
        ("characters", 7),
    ],
)
def test_c65_c81_no_unit_of_inputs_is_believed_beyond_its_bound(name: str, most: int) -> None:
    bound = UsageBound.of(
        an_attempt(),
        choices=1,
        prompt_tokens_max=0,
        output_tokens_max=None,
        shown_bytes=1_000,
        reasons=True,
        inputs=INPUTS,
    )
    assert getattr(bound.apply(Usage(**{name: 1_000})), name) == most
    assert getattr(bound.apply(Usage(**{name: most})), name) == most
    assert getattr(bound.apply(Usage()), name) is None
