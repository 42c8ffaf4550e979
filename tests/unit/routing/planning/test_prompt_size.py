"""The size of a prompt: what a model reads of a request, and the most that it can be.

Keeps C62, C65.
"""

import json
from typing import Any

import pytest

from tests.unit.ingress.samples import chat_completions
from tests.unit.routing.catalogs import catalog, endpoint, model, plan_of, principal
from tollgate.routing.planning.plan import Plan
from tollgate.routing.planning.prompt_size import PromptSize

PDF_URL = {"type": "file", "file": {"file_url": "https://files.example/report.pdf"}}
IMAGE_URL = {"type": "image_url", "image_url": {"url": "https://files.example/cat.png"}}


def body(content: Any, **fields: Any) -> bytes:
    message = {"role": "user", "content": content}
    return json.dumps({"model": "acme/large", "messages": [message], **fields}).encode()


def size(content: Any, **fields: Any) -> PromptSize:
    return PromptSize.of(chat_completions().parse(body(content, **fields)).request)


@pytest.mark.parametrize(
    ("content", "estimate"),
    [("Hello", 2 + 4), ("", 4), ("word " * 100, 125 + 4), ("éé", 1 + 4), ("\u4e2d" * 4, 3 + 4)],
)
def test_c65_an_estimate_counts_the_text_of_the_prompt(content: str, estimate: int) -> None:
    assert size(content).estimate == estimate


def test_c65_what_no_model_reads_is_not_in_the_estimate() -> None:
    metadata = {f"name-{number}": "x" * 500 for number in range(16)}
    assert size("Hello", metadata=metadata, user="u" * 200).estimate == size("Hello").estimate


def test_c65_tools_and_the_schema_of_the_answer_count_as_their_json() -> None:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = {"name": "weather", "description": "Tell it.", "parameters": parameters}
    written = len(json.dumps(parameters, separators=(",", ":")))
    with_tool = size("Hello", tools=[{"type": "function", "function": tool}])
    assert with_tool.estimate == 4 + -(-(5 + 7 + 8 + written) // 4)
    form = {"type": "json_schema", "json_schema": {"name": "city", "schema": parameters}}
    assert size("Hello", response_format=form).estimate == 4 + -(-(5 + written) // 4)


def test_c62_a_file_by_url_has_its_part_in_the_estimate_and_in_the_bound() -> None:
    plain, filed = size([{"type": "text", "text": "Read."}]), size([PDF_URL])
    assert filed.estimate - plain.estimate >= 20_000 - 4
    assert filed.most - plain.most >= 300_000 - 64


def planned(content: Any) -> Plan:
    large = model(endpoint("near", "large-1"), context=1_000_000, input=("text", "image", "pdf"))
    request = chat_completions().parse(body(content, max_tokens=5)).request
    whole = catalog(models={"acme/large": large}, aliases={}, routes={})
    return plan_of(whole, request, principal=principal())


@pytest.mark.parametrize(
    ("part", "most", "typical"), [(PDF_URL, 300_000, 20_000), (IMAGE_URL, 8_192, 1_500)]
)
def test_c62_media_by_url_is_held_and_counted_before_it_is_fetched(
    part: Any, most: int, typical: int
) -> None:
    plan, plain = planned([part]), planned([{"type": "text", "text": ""}])
    # A dollar for a million tokens is a thousand nano-dollars for each.
    assert plan.cost_max_nano_usd - plain.cost_max_nano_usd >= most * 1_000
    assert plan.tokens_max - plain.tokens_max >= typical
