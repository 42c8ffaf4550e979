"""C81: one text of the user as a prompt to complete.

Keeps C13, C17, C18, C81.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.providers.request_options import PLAIN
from tollgate.core.content import Text
from tollgate.core.errors import RequestError
from tollgate.core.request import (
    GenerationRequest,
    JsonOutput,
    ReasoningOptions,
    Sampling,
    UserMessage,
)
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import codec_of

ASKED = GenerationRequest(
    model="acme/base", messages=(UserMessage(content=(Text(text="def f("), Text(text="x):"))),)
)


def sent(request: GenerationRequest = ASKED, **dialect: Any) -> WireRequest:
    own = Dialect(**dialect)
    target = Target(
        provider="near", model="acme/base", upstream_model="b", dialect=own, output_tokens_max=100
    )
    return codec_of("openai_completions").encode(request, target)


def test_c81_a_text_is_the_prompt() -> None:
    wire = sent(replace(ASKED, output_tokens_max=500))
    assert (wire.path, wire.adapted) == ("/completions", ())
    assert wire.body == {
        "model": "b",
        "prompt": "def f(x):",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
    }


def test_c81_a_suffix_goes_out_where_the_server_takes_one() -> None:
    filled = replace(ASKED, suffix="return y")
    assert sent(filled, suffixes=True).body["suffix"] == "return y"
    with pytest.raises(RequestError) as refused:
        sent(filled)
    assert refused.value.param == "suffix"


def test_c81_an_echo_goes_out_where_the_server_knows_its_probabilities() -> None:
    probed = replace(ASKED, echo=True, sampling=Sampling(logprobs=True))
    wire = sent(probed, echoes=True)
    assert (wire.body["echo"], wire.body["logprobs"], wire.adapted) == (True, 0, ())
    with pytest.raises(RequestError) as refused:
        sent(probed, suffixes=True)
    assert refused.value.param == "echo"


def test_c81_mistrals_endpoint_is_a_row() -> None:
    row: dict[str, Any] = {
        "suffixes": True,
        "stream_usage": False,
        "refuses": ("frequency_penalty", "logprobs", "seed", "top_k", "user"),
    }
    sampling = Sampling(temperature=0.2, seed=7, stop=("END",), logprobs=True, top_logprobs=2)
    wire = sent(replace(ASKED, suffix="}", sampling=sampling), **row)
    assert wire.body == {
        "model": "b",
        "prompt": "def f(x):",
        "suffix": "}",
        "stream": True,
        "temperature": 0.2,
        "stop": ["END"],
    }
    assert wire.adapted == ("seed", "logprobs", "top_logprobs")


@pytest.mark.parametrize(
    ("top", "field", "adapted"), [(None, 0, ()), (5, 5, ()), (20, 5, ("top_logprobs",))]
)
def test_c13_c81_log_probs_are_one_number(
    top: int | None, field: int, adapted: tuple[str, ...]
) -> None:
    sampling = Sampling(logprobs=True, top_logprobs=top)
    wire = sent(replace(ASKED, sampling=sampling))
    assert (wire.body["logprobs"], wire.adapted) == (field, adapted)
    assert "top_logprobs" not in wire.body


def test_c18_c81_vllms_fields_go_out_where_its_server_is() -> None:
    guided = replace(ASKED, guided={"guided_regex": "a+"})
    assert sent(guided, guided=True).body["guided_regex"] == "a+"
    with pytest.raises(RequestError) as refused:
        sent(guided)
    assert refused.value.param == "guided_regex"


@pytest.mark.parametrize(
    "request_",
    [
        PLAIN,
        replace(PLAIN, tools=()),
        replace(ASKED, messages=(*ASKED.messages, *ASKED.messages)),
        replace(ASKED, tools=PLAIN.tools),
        replace(ASKED, output_format=JsonOutput()),
    ],
)
def test_c81_a_conversation_is_refused(request_: GenerationRequest) -> None:
    with pytest.raises(RequestError) as refused:
        sent(request_, suffixes=True)
    assert refused.value.param == "messages"


def test_c17_c81_thinking_that_is_wanted_is_named() -> None:
    wire = sent(replace(ASKED, reasoning=ReasoningOptions(effort="high")))
    assert wire.adapted == ("reasoning",)
    assert sent(replace(ASKED, reasoning=ReasoningOptions(effort="none"))).adapted == ()
