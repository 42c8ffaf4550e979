"""C56: rounds of server tools, other kinds of work, token counts, and events besides text.

Keeps C56, C73.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateways import House
from tests.scripted import FOREVER, Silence, answers, calls, ends, frame, says
from tests.scripted_tools import Listener, ScriptedTools, answered, asks, found, sent, with_tools
from tests.unit.engine.client_formats import exchange
from tests.unit.engine.guardrails.homes import (
    CARD,
    EMAIL,
    MODELS,
    SECRET,
    ask,
    guarded,
    patterns,
    text_of,
)
from tests.unit.engine.test_embeddings import offer, vectors
from tests.upstream.openai_chunks import chunk
from tollgate.engine.generate import generate

ROUNDS = ("tool_arguments", "tool_results", "output", "input")


async def with_search(tools: ScriptedTools, *near: Any, **rows: Any) -> House:
    home = await guarded(*near, **rows)
    home.gateway = replace(home.gateway, tools=tools)
    return home


async def test_c56_c73_results_of_server_tools_are_masked_for_model_and_caller() -> None:
    tools = ScriptedTools((found(f"Write to {EMAIL}."),))
    asked = asks(("web_search", json.dumps({"query": f"who is {EMAIL}"})))
    home = await with_search(
        tools,
        asked,
        answers("Done."),
        mail=patterns("email", action="mask", stages=ROUNDS),
    )
    reply = await answered(home, with_tools(home))
    # The model wrote the address itself, so that the tool gets a mask.
    assert tools.ran == [("web_search", {"query": "who is [email]"})]
    assert EMAIL.encode() not in reply.body
    told = json.dumps(sent(home.near, 1)["messages"])
    assert "Write to [email_1]." in told
    assert EMAIL not in told
    stages = {each.stage: each.verdict for each in home.record.judgements}
    assert stages["tool_results"] == stages["tool_arguments"] == "mask"


@pytest.mark.parametrize("stage", ["tool_arguments", "tool_results"])
async def test_c56_c73_what_a_server_tool_may_not_get_or_say_ends_the_answer(stage: str) -> None:
    tools = ScriptedTools((found(f"The key is {SECRET}."),))
    query = SECRET if stage == "tool_arguments" else "weather"
    home = await with_search(
        tools,
        [*says("Let me see."), *asks(("web_search", json.dumps({"query": query})))[1:]],
        answers("Done."),
        secrets=patterns(stages=(stage,)),
    )
    reply = await answered(home, with_tools(home))
    assert reply.status == 200
    assert b"Let me see." in reply.body
    assert b'"finish_reason":"content_filter"' in reply.body
    assert SECRET.encode() not in reply.body
    assert len(tools.ran) == (0 if stage == "tool_arguments" else 1)
    assert len(home.near.requests) == 1
    record = home.record
    assert (record.outcome, record.finish) == ("ok", "content_filter")


def in_parts(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


@pytest.mark.parametrize("action", ["block", "mask", "flag"])
@pytest.mark.parametrize(
    "texts", [(CARD[:7], CARD[7:]), tuple(CARD), ("4111 11", "11 1111", " 1111")]
)
async def test_c56_a_match_that_is_split_over_parts_is_found(
    action: str, texts: tuple[str, ...]
) -> None:
    home = await guarded(answers("Hello"), cards=patterns("card_number", action=action))
    reply = await ask(home, in_parts("Charge ", *texts, ", please."))
    assert reply.status == (200 if action == "flag" else 400)
    if action == "flag":
        judged = {each.stage: (each.verdict, each.findings) for each in home.record.judgements}
        assert judged["input"] == ("flag", ("card_number",))
    else:
        assert "card_number" in reply.error["message"]
        assert home.near.requests == []


async def test_c56_a_match_within_one_of_several_parts_is_masked() -> None:
    home = await guarded(answers("Hello"), mail=patterns("email", action="mask"))
    assert (await ask(home, in_parts(f"Write to {EMAIL}", "m today"))).status == 200
    [content] = [each["content"] for each in sent(home.near, 0)["messages"]]
    assert EMAIL not in json.dumps(content)


NAMED: Any = {"type": "function", "function": {"name": SECRET}}


@pytest.mark.parametrize(
    "fields",
    [
        {"stop": [SECRET]},
        {"tools": [NAMED]},
        {"messages": [{"role": "user", "name": SECRET, "content": "Hi"}]},
    ],
)
@pytest.mark.parametrize("action", ["block", "mask"])
async def test_c56_a_match_in_a_name_or_stop_sequence_is_refused(
    fields: dict[str, Any], action: str
) -> None:
    home = await guarded(answers("Hello"), secrets=patterns("secret", action=action))
    reply = await ask(home, **fields)
    assert (reply.status, reply.error["code"]) == (400, "content_filter")
    assert home.near.requests == []


async def test_c56_every_choice_ends_when_one_is_refused() -> None:
    fine = [*says("fine " * 99), FOREVER]
    refused = [Silence(1), *says(f"{SECRET} ", "more words " * 60), *ends()]
    home = await guarded(fine, refused, secrets=patterns(stages=("output",)))
    reply = await ask(home, n=2)
    assert reply.status == 200, reply.body
    assert [each["finish_reason"] for each in reply.json["choices"]] == ["content_filter"] * 2
    assert b"fine fine " in reply.body
    assert SECRET.encode() not in reply.body


async def test_c56_log_probabilities_and_unknown_fields_of_judged_answers_are_left_out() -> None:
    entry = {"token": SECRET, "logprob": -0.1, "bytes": None, "top_logprobs": []}
    begun = chunk({"content": "Hello"})
    begun["choices"][0]["logprobs"] = {"content": [entry]}
    begun["surprise"] = SECRET
    for stages, is_shown in ((("output",), False), (("tool_results",), True)):
        home = await guarded([frame(begun), *ends()], secrets=patterns(stages=stages))
        reply = await ask(home, logprobs=True)
        assert reply.json["choices"][0]["message"]["content"] == "Hello"
        assert (SECRET.encode() in reply.body) == is_shown


@pytest.mark.parametrize("action", ["block", "mask"])
async def test_c56_titles_and_urls_of_citations_are_judged(action: str) -> None:
    begun = chunk({"content": "Hello"})
    cited = {"url": f"https://a.example/{SECRET}", "title": SECRET, "start_index": 0}
    begun["choices"][0]["delta"]["annotations"] = [
        {"type": "url_citation", "url_citation": {**cited, "end_index": 2}}
    ]
    rows = patterns("secret", stages=("output",), action=action)
    home = await guarded([frame(begun), *ends()], secrets=rows)
    reply = await ask(home)
    assert SECRET.encode() not in reply.body
    [choice] = reply.json["choices"]
    assert choice["finish_reason"] == ("content_filter" if action == "block" else "stop")
    if action == "mask":
        [note] = choice["message"]["annotations"]
        assert note["url_citation"]["url"] == "https://a.example/[secret]"


async def test_c56_reasoning_is_judged_like_the_answer() -> None:
    thought = frame(chunk({"reasoning": f"They use {EMAIL} "}))
    home = await guarded([thought, *answers("Hi")], mail=patterns("email", action="mask"))
    reply = await ask(home)
    assert reply.json["choices"][0]["message"]["reasoning"] == "They use [email] "


async def test_c56_tools_and_schemas_of_a_request_are_input() -> None:
    home = await guarded(mail=patterns("email", action="mask"))
    function = {
        "name": "f",
        "description": EMAIL,
        "parameters": {"properties": {"a": {"enum": [EMAIL]}}},
    }
    schema = {"type": "object", "description": EMAIL}
    reply = await ask(
        home,
        tools=[{"type": "function", "function": function}],
        response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": schema}},
    )
    assert reply.status == 200, reply.body
    assert EMAIL not in json.dumps(home.near.requests[0].body)


@pytest.mark.parametrize("action", ["block", "mask"])
async def test_c56_inputs_of_other_work_are_refused_since_they_cannot_be_masked(
    action: str,
) -> None:
    home = await guarded(secrets=patterns(action=action))
    models = {**MODELS, "acme/vec": vectors(offer("near"))}
    home = await guarded(sections={"models": models}, secrets=patterns(action=action))
    reply = await exchange(home, "/v1/embeddings", {"model": "acme/vec", "input": ["a", CARD]})
    assert (reply.status, reply.error["code"]) == (400, "content_filter")
    assert home.near.requests == []


async def test_c56_a_masked_text_costs_no_more_than_was_held() -> None:
    home = await guarded(answers("a@b.co " * 400), mail=patterns("email", action="mask"))
    reply = await ask(home, "a@b.co " * 400, max_tokens=4_000)
    assert text_of(reply) == "[email] " * 400
    record = home.record
    assert record.cost_nano_usd <= record.held_nano_usd


async def test_c56_a_refused_answer_keeps_the_order_of_events() -> None:
    fine, filler = "fine words " * 40, "more words " * 40
    home = await guarded(
        [*says(fine), *calls("f", '{"a": 1}'), *says(f"{SECRET} {filler}")[1:], *ends()],
        [*says(fine), *says(f"{SECRET} {filler}")[1:], *ends()],
        secrets=patterns(stages=("output", "tool_arguments")),
    )
    for _ in home.near.requests, home.far.requests:
        call = home.call("acme/large")
        listener = Listener(home, call)
        await generate(home.gateway, call, listener)  # type: ignore[arg-type]
        whole = listener.whole
        assert whole.finish == "content_filter"
        assert SECRET not in str(whole.parts)
        assert "fine words" in str(whole.parts)
