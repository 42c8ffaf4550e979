"""C81: several conversations in one request: one hold, one record, one bill.

Keeps C14, C36, C62, C65, C81.
"""

from typing import Any

from msgspec.structs import replace

from tests.gateways import FUNDS_NANO_USD, House, house, request_body
from tests.scripted import Answer, Scripted, Silence, answers, counts, ends, frame, refuses, says
from tests.unit.engine.test_choices import NATIVE, native, texts
from tests.unit.routing.catalogs import catalog, endpoint, model, plan_of, principal
from tests.upstream.openai_chunks import chunk
from tollgate.core.content import Text
from tollgate.core.records.generation import PromptTokens
from tollgate.core.request import GenerationRequest, Message, UserMessage
from tollgate.engine.gateway import Call
from tollgate.engine.generate import generate
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.planning.prompt_size import PromptSize


def asks(text: str) -> tuple[Message, ...]:
    return (UserMessage(content=(Text(text=text),)),)


def several(*prompts: str, **changes: Any) -> GenerationRequest:
    """A request with these prompts and a body that has nothing besides."""
    first, *further = map(asks, prompts)
    size = sum(len(prompt) for prompt in prompts)
    return GenerationRequest(
        model="acme/large", messages=first, further=tuple(further), size_bytes=size, **changes
    )


async def serve(home: House, request: GenerationRequest, *, stream: bool = False) -> list[str]:
    call = called(home, request, stream=stream)
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    assert reply.status == 200, reply.body
    return [] if stream else texts(reply)


def called(home: House, request: GenerationRequest, *, stream: bool) -> Call:
    call = home.call("acme/large", stream=stream)
    return replace(call, parsed=replace(home.ingress.parse(request_body()), request=request))


def prompts_sent(home: House) -> list[Any]:
    return [sent.body["messages"] for sent in home.near.requests]


async def test_c81_every_conversation_is_a_request_of_its_own_and_the_bill_is_one() -> None:
    home = await house(near=Scripted(answers("a"), answers("b"), answers("c")))
    assert await serve(home, several("One", "Two", "Three")) == ["a", "b", "c"]
    assert prompts_sent(home) == [
        [{"role": "user", "content": text}] for text in ("One", "Two", "Three")
    ]
    record = home.record
    assert (record.usage.input_tokens, record.usage.output_tokens) == (30, 6)
    assert record.cost_nano_usd == 3 * 60_000 == home.spent_nano_usd
    assert len(record.trace.prompts) == 3


async def test_c14_c81_choices_are_numbered_conversation_by_conversation() -> None:
    home = await house(near=Scripted(*map(answers, "abcd")))
    assert await serve(home, several("One", "Two", choices=2)) == ["a", "b", "c", "d"]
    asked = [sent[0]["content"] for sent in prompts_sent(home)]
    assert asked == ["One", "One", "Two", "Two"]
    assert home.record.usage.output_tokens == 8


async def test_c14_c81_a_native_n_is_one_request_for_each_conversation() -> None:
    home = await house(near=Scripted(native("a", "b"), native("c", "d")), providers=NATIVE)
    assert await serve(home, several("One", "Two", choices=2)) == ["a", "b", "c", "d"]
    assert [sent.body["n"] for sent in home.near.requests] == [2, 2]
    assert home.record.usage.input_tokens == 20


async def test_c15_c81_one_call_at_most_is_a_rule_for_every_conversation() -> None:
    home = await house(near=Scripted(*map(answers, "abc")))
    single = several("One", "Two", "Three", parallel_tool_calls=False)
    assert await serve(home, single) == ["a", "b", "c"]


async def test_c36_c81_one_conversation_that_is_refused_fails_all_and_costs_nothing() -> None:
    late: Answer = [Silence(5), *answers("a")]
    home = await house(near=Scripted(late, refuses(400)))
    call = called(home, several("One", "Two"), stream=False)
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    assert reply.status == 400
    assert (home.record.cost_nano_usd, home.spent_nano_usd) == (0, 0)
    assert home.stores.books.wallets[home.principal.workspace_id].available == FUNDS_NANO_USD


def test_c62_c81_the_bound_counts_each_prompt_by_its_own_size() -> None:
    def bound(request: GenerationRequest) -> int:
        return plan_of(catalog(), request, principal=principal()).cost_max_nano_usd

    limited = {"output_tokens_max": 10}
    short, long = several("x" * 100, **limited), several("y" * 10_000, **limited)
    both = several("x" * 100, "y" * 10_000, **limited)
    assert bound(both) == bound(short) + bound(long)
    assert bound(replace(both, choices=3)) == 3 * bound(both)


def test_c62_c81_tokens_per_minute_count_every_prompt_and_its_answer() -> None:
    one, two = (
        several("x" * 100, output_tokens_max=10),
        several("x" * 100, "x" * 100, output_tokens_max=10),
    )
    tokens = [plan_of(catalog(), each, principal=principal()).tokens_max for each in (one, two)]
    assert tokens[1] == 2 * tokens[0]


def test_c62_c81_the_rest_of_the_body_may_belong_to_any_prompt() -> None:
    request = replace(several("x" * 60, "y" * 6_000), size_bytes=6_060 + 200)
    assert PromptSize.of_each(request) == (
        PromptSize(least=10, estimate=15 + 4, most=130),
        PromptSize(least=1_000, estimate=1_500 + 4, most=3_100),
    )


def test_c53_c81_a_record_plans_as_the_request_did() -> None:
    wanted = PlanningRequest.of(
        several("One", "Twice as long"), principal=principal(), request_id="r"
    )
    trace = wanted.trace(route=None, rule=None, metadata_names=frozenset())
    assert trace.prompts == (PromptTokens(estimate=5, most=2), PromptTokens(estimate=8, most=7))
    assert PlanningRequest.recorded(trace) == wanted


async def test_c65_c81_each_prompt_has_the_rate_of_its_own_size() -> None:
    dearer = endpoint("near", "large-1", dollars_in="3", dollars_out="15") | {
        "overrides": ({"when": {"prompt_tokens_over": 50}, "price": {"input": 30}},)
    }

    def told(prompt_tokens: int) -> Answer:
        finish = frame(chunk({}, finish="stop"))
        return [*says("a"), finish, counts(prompt_tokens, 2), *ends()[2:]]

    home = await house(
        near=Scripted(told(40), told(40), told(60)),
        models={"acme/large": model(dearer)},
        aliases={},
        routes={},
    )
    await serve(home, several("One", "Two", "Three"))
    items = [(line.item, line.quantity, line.usd_per_million) for line in home.record.lines]
    assert items == [("input", 80, 3), ("output", 4, 15), ("input", 60, 30), ("output", 2, 15)]


async def test_c65_c81_what_is_estimated_is_each_prompts_own_size() -> None:
    silent = [*says("four"), frame(chunk({}, finish="stop")), *ends()[2:]]
    home = await house(near=Scripted(silent))
    await serve(home, several("x" * 40, "y" * 400))
    record = home.record
    assert record.usage_source == "estimated"
    assert record.usage.input_tokens == 10 + 4 + 100 + 4
