"""C81: legacy completions as clients write them, and what the parser says of them.

Keeps C6, C13, C18, C19, C81.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cells import cells
from tests.unit.ingress.test_parse_anything import json_values
from tollgate.core.content import Text
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import UserMessage
from tollgate.ingress.base import ParsedCall
from tollgate.ingress.completions.parse import parse_completion
from tollgate.ingress.completions.wire.completion_request import (
    ANSWERS_MAX,
    OUTPUT_TOKENS_DEFAULT,
    CompletionRequest,
)


def body(**fields: Any) -> bytes:
    return json.dumps({"model": "test/echo", "prompt": "Once", **fields}).encode()


def understood(**fields: Any) -> ParsedCall:
    return parse_completion(body(**fields))


def refusal(raw: bytes) -> RequestError:
    with pytest.raises(RequestError) as refused:
        parse_completion(raw)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    return refused.value


def test_c81_a_prompt_is_one_user_message() -> None:
    call = understood()
    assert call.request.messages == (UserMessage(content=(Text(text="Once"),)),)
    assert (call.request.answers, call.echoes, call.stream) == (1, False, False)


def test_c81_several_prompts_have_n_answers_each() -> None:
    request = understood(prompt=["One", "Two"], n=3, best_of=3).request
    assert [it[0].content[0] for it in request.conversations] == [
        Text(text="One"),
        Text(text="Two"),
    ]
    assert (request.choices, request.answers) == (3, 6)


def test_c81_the_output_is_short_unless_the_caller_says_more() -> None:
    assert understood().request.output_tokens_max == OUTPUT_TOKENS_DEFAULT == 16
    assert understood(max_tokens=300).request.output_tokens_max == 300


@pytest.mark.parametrize(
    ("stated", "expected"), [(None, (None, None)), (0, (True, None)), (5, (True, 5))]
)
def test_c81_log_probs_are_a_number_of_alternatives(
    stated: int | None, expected: tuple[bool | None, int | None]
) -> None:
    sampling = understood(logprobs=stated).request.sampling
    assert (sampling.logprobs, sampling.top_logprobs) == expected


def test_c18_c19_c81_the_gateways_own_fields_and_vllms_are_those_of_chat() -> None:
    episode = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    call = understood(
        models=["other"],
        provider={"only": ["near"]},
        session_id="s",
        metadata={"team": "a"},
        usage_on="finish",
        episode_id=episode,
        guided_regex="a+",
        user="u",
        top_k=4,
        stop="x",
    )
    request = call.request
    assert request.preferences.models == ("other",)
    assert request.preferences.only == ("near",)
    assert request.preferences.session_id == "s"
    assert (request.metadata, request.user) == ({"team": "a"}, "u")
    assert (request.guided, request.sampling.top_k) == ({"guided_regex": "a+"}, 4)
    assert request.sampling.stop == ("x",)
    assert (call.usage_on, call.episode_id) == ("finish", episode)


def test_c81_a_suffix_is_passed_on_and_an_empty_one_is_none() -> None:
    assert understood(suffix="end").request.suffix == "end"
    assert understood(suffix="").request.suffix is None


@pytest.mark.parametrize("logprobs", [None, 0, 3])
def test_c81_an_echo_is_the_renderers_unless_its_probabilities_are_wanted(
    logprobs: int | None,
) -> None:
    call = understood(echo=True, logprobs=logprobs)
    assert (call.echoes, call.request.echo) == (logprobs is None, logprobs is not None)


def test_c81_unknown_fields_are_named() -> None:
    fields = {
        "tools": [],
        "novelty": 1,
        "stream_options": {"x": 1},
        "provider": {"speed": "fast"},
    }
    assert understood(**fields).ignored == (
        "tools",
        "novelty",
        "stream_options.x",
        "provider.speed",
    )


@cells(
    ("fields", "param", "words"),
    [
        ({"prompt": None}, "prompt", "must be a string or an array of strings"),
        ({"prompt": ""}, "prompt", "must not be empty"),
        ({"prompt": []}, "prompt", "must not be empty"),
        ({"prompt": ["a", ""]}, "prompt[1]", "must not be empty"),
        ({"prompt": {"text": "a"}}, "prompt", "must be a string or an array of strings"),
        ({"prompt": [1, 2, 3]}, "prompt", "token ids are not supported"),
        ({"prompt": [[1], [2]]}, "prompt", "token ids are not supported"),
        ({"prompt": ["a"] * (ANSWERS_MAX + 1)}, "prompt", f"at most {ANSWERS_MAX} entries"),
        ({"prompt": ["a"] * 5, "n": 8}, "prompt", f"at most {ANSWERS_MAX} answers, not 5 times 8"),
        ({"n": 9}, "n", "must be at most 8"),
        ({"best_of": 2}, "best_of", "must be 1, the value of n"),
        ({"best_of": 1, "n": 2}, "best_of", "must be 2, the value of n"),
        ({"suffix": 1}, "suffix", "must be a string"),
        ({"max_tokens": 0}, "max_tokens", "must be at least 1"),
        ({"logprobs": 6}, "logprobs", "must be at most 5"),
        ({"logprobs": True}, "logprobs", "must be an integer"),
        ({"echo": "yes"}, "echo", "must be true or false"),
        ({"stop": list("abcde")}, "stop", "at most 4 entries"),
        ({"temperature": 3}, "temperature", "must be at most 2"),
        ({"model": None}, "model", "must be a string"),
    ],
)
def test_c6_c81_a_refusal_names_the_field(fields: dict[str, Any], param: str, words: str) -> None:
    refused = refusal(body(**fields))
    assert (refused.param, words in refused.message) == (param, True), refused.message


def test_c81_a_prompt_is_required() -> None:
    assert refusal(b'{"model": "m"}').param == "prompt"


requests = st.fixed_dictionaries(
    {"model": st.just("m"), "prompt": st.just("hi") | st.lists(st.text(max_size=3)) | json_values},
    optional=dict.fromkeys(
        CompletionRequest.model_fields.keys() - {"model", "prompt"}, json_values
    ),
)


@given(request=requests | json_values)
def test_c6_c81_any_json_is_understood_or_refused(request: Any) -> None:
    refused = None
    try:
        parse_completion(json.dumps(request).encode())
    except RequestError as error:
        refused = error
    assert refused is None or refused.code is ErrorCode.INVALID_REQUEST
