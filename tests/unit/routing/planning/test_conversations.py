"""A conversation stays at the endpoint that has its prompt cached, without a session id.

Keeps C53.
"""

from collections import Counter

from msgspec.structs import replace

from tests.unit.routing.catalogs import (
    NOW_S,
    RECENTLY,
    catalog,
    endpoint,
    model,
    plan_of,
    principal,
)
from tollgate.core.content import Text
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    RoutingPreferences,
    SystemMessage,
    UserMessage,
)
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest

CACHEABLE = {"tokens_min": 1024, "source": "made up", "checked": RECENTLY}
LONG, SHORT = 1_300, 900
KEY = principal()


def drawn(**facts: object) -> dict[str, object]:
    near = endpoint("near", "large-1") | {"weight": 50}
    far = endpoint("far", "L") | {"weight": 50}
    return {"acme/large": model(near, far, **facts)}


CACHES = catalog(models=drawn(cacheable=CACHEABLE), routes={}, aliases={})
STATES_NOTHING = catalog(models=drawn(), routes={}, aliases={})


def turn(number: int, *, tokens: int = LONG, said: str = "Hello") -> GenerationRequest:
    """Return a turn of a conversation; each turn repeats the earlier ones."""
    messages: list[Message] = [
        SystemMessage(content=(Text(text="x" * 4 * tokens),)),
        UserMessage(content=(Text(text=said),)),
    ]
    for earlier in range(number):
        messages.append(AssistantMessage(content=(Text(text=f"Answer {earlier}"),)))
        messages.append(UserMessage(content=(Text(text=f"Question {earlier}"),)))
    return GenerationRequest(model="acme/large", messages=tuple(messages), size_bytes=4 * tokens)


def first(turned: GenerationRequest, request_id: str, plans: object = CACHES) -> str:
    plan = plan_of(plans, turned, principal=KEY, request_id=request_id)  # type: ignore[arg-type]
    return plan.attempts[0].target.endpoint_id


def test_c53_a_conversation_stays_and_conversations_are_spread_by_weight() -> None:
    kept: Counter[str] = Counter()
    for number in range(200):
        asked = [turn(place, said=f"Talk {number}") for place in range(4)]
        served = {first(each, f"{number}-{place}") for place, each in enumerate(asked)}
        assert len(served) == 1
        kept.update(served)
    assert min(kept.values()) > 70


def test_c53_below_the_minimum_of_its_model_a_conversation_is_drawn_by_request() -> None:
    for plans, tokens in ((CACHES, SHORT), (STATES_NOTHING, LONG)):
        served = {first(turn(0, tokens=tokens), f"r-{number}", plans) for number in range(40)}
        assert served == {"near/large-1", "far/L"}


def test_c53_models_of_a_route_are_drawn_by_conversation_too() -> None:
    models = {
        name: model(endpoint(provider, name[-1]), cacheable=CACHEABLE)
        for name, provider in (("acme/a", "near"), ("acme/b", "far"))
    }
    drawing = {"acme/large-or-so": {"description": "x", "try": ({"acme/a": 50, "acme/b": 50},)}}
    plans = catalog(models=models, routes=drawing, aliases={})
    asked = replace(turn(0), model="acme/large-or-so")
    assert len({first(asked, f"r-{number}", plans) for number in range(40)}) == 1


def test_c53_a_session_decides_before_the_conversation() -> None:
    session = replace(turn(0), preferences=RoutingPreferences(session_id="s-1"))
    wanted = PlanningRequest.of(session, principal=KEY, request_id="r-1")
    assert wanted.conversation_hash is None


def test_c53_the_hash_says_nothing_across_workspaces() -> None:
    keys = (KEY, replace(KEY, workspace_id="other"))
    hashes = {
        PlanningRequest.of(turn(0), principal=key, request_id="r-1").conversation_hash
        for key in keys
    }
    assert len(hashes) == 2


def test_c53_the_opening_alone_is_the_conversation() -> None:
    def hash_of(asked: GenerationRequest) -> str | None:
        return PlanningRequest.of(asked, principal=KEY, request_id="r-1").conversation_hash

    assert hash_of(turn(0)) == hash_of(turn(3)) != hash_of(turn(0, said="Good day"))
    assert hash_of(turn(0, tokens=400)) is None
    # Only the ends of long texts are hashed.
    long = "x" * 50_000
    said = (long, f"{long}y", f"y{long}", f"{long}x", f"{long[1:]}y")
    assert len({hash_of(turn(0, said=each)) for each in said}) == len(said)


def test_c53_a_record_replays_the_draw() -> None:
    planner = Planner(CACHES)
    for number in range(20):
        wanted = PlanningRequest.of(turn(1, said=f"{number}"), principal=KEY, request_id="r-1")
        plan = planner.plan(wanted, now_s=NOW_S)
        again = planner.plan(PlanningRequest.recorded(plan.trace), now_s=NOW_S)
        assert again.attempts == plan.attempts
