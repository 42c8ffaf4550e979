"""The official SDK against a deployment: a few answers, for a fraction of a cent.

Keeps C2, C40, C66.
"""

import json
import urllib.request

import pytest
from openai import APIStatusError, OpenAI
from openai.types.chat import ChatCompletionMessageParam

from tests.live.conftest import Smoked

ASKED: list[ChatCompletionMessageParam] = [
    {"role": "user", "content": "Write the numbers from one to twenty as words."}
]


def test_the_models_are_listed(client: OpenAI) -> None:
    assert [it.id for it in client.models.list()]


def test_an_answer_says_what_it_used_and_cost(client: OpenAI, smoked: Smoked) -> None:
    answer = client.chat.completions.create(model=smoked.model, messages=ASKED, max_tokens=200)
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.model_extra is not None
    assert float(answer.usage.model_extra["cost"]) >= 0


def test_c66_a_stream_comes_in_pieces_and_its_record_is_there(
    client: OpenAI, smoked: Smoked
) -> None:
    stream = client.chat.completions.create(
        model=smoked.model, messages=ASKED, max_tokens=200, stream=True
    )
    chunks = list(stream)
    said = [it.choices[0].delta.content for it in chunks if it.choices]
    assert len([it for it in said if it]) > 1
    assert chunks[-1].usage is not None
    request = urllib.request.Request(
        f"{smoked.url}/generation?id={chunks[0].id}",
        headers={"authorization": f"Bearer {smoked.key}"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        record = json.load(reply)["data"]
    assert record["id"].removeprefix("gen-") == chunks[0].id.removeprefix("gen-")


def test_c40_an_unknown_model_is_a_404_in_the_envelope(client: OpenAI) -> None:
    with pytest.raises(APIStatusError) as refused:
        client.chat.completions.create(model="nobody/nothing", messages=ASKED)
    assert (refused.value.status_code, refused.value.code) == (404, "model_not_found")
    assert refused.value.request_id


def test_c2_an_unknown_key_is_a_401(client: OpenAI, smoked: Smoked) -> None:
    stranger = client.with_options(api_key="sk-tg-unknown")
    with pytest.raises(APIStatusError) as refused:
        stranger.chat.completions.create(model=smoked.model, messages=ASKED)
    assert (refused.value.status_code, refused.value.code) == (401, "invalid_api_key")
