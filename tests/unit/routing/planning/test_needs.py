"""C81: what a provider's format has room for decides before anything is spent.

Keeps C51, C53, C81.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.routing.catalogs import (
    catalog,
    endpoint,
    model,
    plan_of,
    principal,
    provider,
    request,
)
from tollgate.core.content import Text
from tollgate.core.errors import RequestError
from tollgate.core.request import GenerationRequest, SystemMessage, Tool
from tollgate.routing.planning.planning_request import PlanningRequest

TEXT = request("acme/any")
TALK = replace(TEXT, messages=(SystemMessage(content=(Text(text="Be brief."),)), *TEXT.messages))
GAP = replace(TEXT, suffix="The end.")


def served(request_: GenerationRequest, **dialect: Any) -> list[str]:
    """The providers of a plan: `chat` holds conversations, `plain` completes prompts."""
    known = catalog(
        providers={
            "plain": provider(codec="openai_completions", dialect=dialect),
            "chat": provider(),
        },
        models={
            "acme/any": model(endpoint("plain", "p"), endpoint("chat", "c"), supports=("tools",))
        },
        aliases={},
        routes={},
    )
    plan = plan_of(known, request_, principal=principal())
    return [attempt.target.provider for attempt in plan.attempts]


def test_c81_one_text_may_be_served_by_either() -> None:
    assert served(TEXT) == ["plain", "chat"]


@pytest.mark.parametrize("talk", [TALK, replace(TEXT, tools=(Tool(name="f"),))])
def test_c81_a_conversation_goes_to_those_that_hold_one(talk: GenerationRequest) -> None:
    assert served(talk) == ["chat"]


def test_c81_a_suffix_goes_to_those_that_fill_gaps() -> None:
    assert served(GAP, suffixes=True) == ["plain"]


def test_c81_a_suffix_that_nobody_takes_is_refused_by_its_name() -> None:
    with pytest.raises(RequestError) as refused:
        served(GAP)
    assert refused.value.param == "suffix"
    assert refused.value.message == (
        "acme/any does not take suffix: plain/p does not take suffix; chat/c does not take suffix."
    )


def test_c81_an_echo_with_probabilities_goes_to_those_that_have_them() -> None:
    probed = replace(TEXT, echo=True)
    assert served(probed, echoes=True) == ["plain"]
    with pytest.raises(RequestError) as refused:
        served(probed, suffixes=True)
    assert refused.value.param == "echo"


def test_c81_a_conversation_that_nobody_holds_is_refused() -> None:
    with pytest.raises(RequestError) as refused:
        served(replace(TALK, suffix="The end."), suffixes=True)
    assert refused.value.param in ("messages", "suffix")


def test_c53_c81_a_record_has_what_the_request_needed() -> None:
    wanted = PlanningRequest.of(GAP, principal=principal(), request_id="r")
    trace = wanted.trace(route=None, rule=None, metadata_names=frozenset())
    assert trace.needs == ("suffix",)
    assert PlanningRequest.recorded(trace) == wanted
