"""Design 7.2: DynamoDB's grammar, not the emulator's."""

import pytest

from tests.cells import cells
from tests.dynamodb_grammar import Expression, NotInTheGrammar, check_request
from tollgate.stores.aws import expressions
from tollgate.stores.aws.expressions import (
    ConditionalUpdate,
    key_change,
    set_and_remove,
    slice_change,
)
from tollgate.stores.keys import hold_expressions, session_expressions
from tollgate.stores.keys.hold_expressions import key_hold, key_settle, key_top_up

UPDATES = {
    "wallet hold": expressions.WALLET_HOLD,
    "wallet hold of the rest": expressions.WALLET_HOLD_REST,
    "wallet settle": expressions.WALLET_SETTLE,
    "wallet grant": expressions.WALLET_GRANT,
    "key hold, idle": key_hold("idle"),
    "key hold, busy": key_hold("busy"),
    "key hold, unlimited": key_hold("unlimited"),
    "key hold, idle, three stale buckets": key_hold("idle", 3),
    "key hold, busy, three stale buckets": key_hold("busy", 3),
    "key hold, its own limits": key_hold("idle", rate="own", budget=(2, "own")),
    "key hold, its tier's limits": key_hold("idle", 1, rate="tier", budget=(0, "tier")),
    "key hold, its tier's limits, busy": key_hold("busy", rate="tier", budget=(3, "tier")),
    "key hold beside submissions": key_hold("busy", 1, waiting=32),
    "key hold, three quotas": key_hold("idle", 2, counters=3),
    "key settle": key_settle(),
    "key settle, three quotas": key_settle(3),
    "key top-up, three quotas": key_top_up(counters=3),
    "a failure": expressions.COOLDOWN_ANOTHER,
    "the first failure": expressions.COOLDOWN_FIRST,
    "a probe": expressions.COOLDOWN_PROBE,
    "a probe without a result": expressions.COOLDOWN_UNPROBED,
    "an answer after a rest": expressions.COOLDOWN_OVER,
    "a key that works": expressions.COOLDOWN_KEY_WORKS,
    "a speed, more": expressions.SPEED_MORE,
    "a speed, next window": expressions.SPEED_NEXT,
    "a speed, first": expressions.SPEED_FIRST,
    "item version": expressions.ITEMS_RAISE,
    "key disable": expressions.KEY_DISABLE,
    "key used": expressions.KEY_USED,
    "key address": session_expressions.KEY_ADDRESS,
    "key address forgotten": session_expressions.KEY_ADDRESS_FORGET,
    "key top-up": key_top_up(),
    "key top-up within its own limit": key_top_up((0, "own")),
    "key top-up within its tier": key_top_up((3, "tier")),
    "key change": key_change(("on", "ex", "tat"), {"ld": (2, 1), "tl": (0, 3)}),
    "slice change": slice_change(
        ("cc", "gi", "gs"),
        {"ld": (2, 1), "tl": (0, 3)},
        {"ld": 1},
        same_revision=True,
        fewer=True,
        shifts=True,
    ),
    "level grow": expressions.LEVEL_GROW,
    "level grow first": expressions.LEVEL_GROW_FIRST,
    "rows described": set_and_remove(("label", "ex"), ("tier",), expressions.SAME_HASH),
    "wallet settle, crowded": expressions.WALLET_SETTLE_CROWDED,
    "wallet top-up": expressions.WALLET_TOP_UP,
    "wallet take": expressions.WALLET_TAKE,
    "wallet lock": expressions.WALLET_LOCK,
    "workspace grow": expressions.WORKSPACE_GROW,
    "workspace lock": expressions.WORKSPACE_LOCK,
    "workspace described": set_and_remove(
        ("adm", "bp"), ("bud",), expressions.same_values(("adm", "bud"), ("bp",))
    ),
    "workspace lend": expressions.WORKSPACE_LEND,
    "workspace lend first": expressions.WORKSPACE_LEND_FIRST,
    "pointer applied": expressions.KEY_APPLIED,
    "pointer described": set_and_remove(("label", "rev"), ("tier",), expressions.SAME_CHANGE),
    "workspace copied": expressions.WORKSPACE_COPIED,
    "secret copy": expressions.SECRET_COPY_ADMISSION,
    "secret copy, no admission": expressions.SECRET_COPY_NO_ADMISSION,
    "alert lease": expressions.ALERT_LEASE,
    "alert sent": expressions.ALERT_SENT,
    "webhook change": expressions.WEBHOOK_CHANGE,
    "webhook enable": expressions.WEBHOOK_ENABLE,
    "webhook cursor": expressions.WEBHOOK_CURSOR,
    "webhook takes": expressions.WEBHOOK_TAKES,
    "webhook fails": expressions.WEBHOOK_FAILS,
    "delivery claim": expressions.DELIVERY_CLAIM,
    "delivery note": expressions.DELIVERY_NOTE,
    "wallet uncrowd": expressions.WALLET_UNCROWD,
    "claim done": expressions.CLAIM_DONE,
    "code of a sign-in": expressions.CODE_REPLACE,
    "code of a sign-in, as long as before": expressions.CODE_REPLACE_AND_KEEP,
    "calls of an address": expressions.CODE_COUNT,
    "file reserve": expressions.FILE_RESERVE,
    "file commit": expressions.FILE_COMMIT,
    "file release": expressions.FILE_RELEASE,
    "file free": expressions.FILE_FREE,
    "file deleting": expressions.FILE_DELETING,
    "file part": expressions.FILE_PART,
    "file parts deleting": expressions.FILE_PARTS_DELETING,
    "file joining": expressions.FILE_JOINING,
    "file apart": expressions.FILE_APART,
    "file joined": expressions.FILE_JOINED,
    "file arrived": expressions.FILE_ARRIVED,
    "team join": expressions.TEAM_JOIN,
    "team delete": expressions.TEAM_DELETE,
    "member remove": expressions.MEMBER_REMOVE,
    "member forget": expressions.MEMBER_FORGET,
    "member link": expressions.MEMBER_LINK,
    "member's session key": expressions.MEMBER_SESSION_KEY,
    "member's sessions end": expressions.MEMBER_END_SESSIONS,
    "session renew": expressions.SIGN_IN_RENEW,
    "session hold, first": session_expressions.SESSION_FIRST,
    "session hold": session_expressions.SESSION_NEXT,
    "session settle": session_expressions.SESSION_SETTLE,
    "level change": expressions.LEVEL_CHANGE,
    "level change, pending": expressions.LEVEL_CHANGE_PENDING,
}
CONDITIONS = (
    expressions.IF_ABSENT,
    expressions.IF_PRESENT,
    expressions.SAME_STANDING,
    expressions.ROWS_OF_PARTITION,
    expressions.CLAIM_FREE,
    expressions.UNLESS_CURRENT,
    expressions.CLAIM_MINE,
    expressions.ROWS_BETWEEN,
    expressions.HAS_HOLDS,
    expressions.KEY_DELETE,
    expressions.SAME_HASH,
    expressions.SAME_CHANGE,
    expressions.UNCHANGED,
    expressions.SAME_KEY,
    expressions.SAME_REVISION,
    expressions.LATER_LOOK,
    expressions.LEVEL_THERE,
    expressions.SAME_LEVEL,
    expressions.STATE_SEED,
    expressions.SESSION_THERE,
)
PROJECTIONS = (expressions.HOLDS_PROJECTION,)


@cells("write", UPDATES.values(), ids=UPDATES.keys())
def test_every_update_obeys_the_documented_grammar(write: ConditionalUpdate) -> None:
    Expression(write.update).update()
    Expression(write.condition).condition()


@pytest.mark.parametrize("condition", CONDITIONS)
def test_every_condition_and_filter_obeys_the_documented_grammar(condition: str) -> None:
    Expression(condition).condition()


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_every_projection_obeys_the_documented_grammar(projection: str) -> None:
    Expression(projection).projection()


def test_the_largest_change_of_a_slice_is_within_what_dynamodb_takes() -> None:
    """Every attribute, and each limit with three live buckets: a minute, a day and a month end.

    4 KB an expression, 300 operators in it: service quotas in the Amazon DynamoDB developer guide
    (seen 2026-11-26). Sixteen of them, a row and its entry are a fifth of a transaction's actions.
    """
    limits = ("ld", "lw", "lm", "lt", "tl")
    for existing in range(4):
        largest = slice_change(
            ("cc", "sl", "tat", "ra", "gi", "gs"),
            dict.fromkeys(limits, (existing, 3 - existing)),
            dict.fromkeys(limits, 0) if existing else {},
            same_revision=True,
            fewer=True,
            shifts=True,
        )
        for expression in (largest.update, largest.condition):
            assert len(expression.encode()) < 4_096
            assert len(expression.split()) < 300


def test_no_expression_lies_anywhere_else() -> None:
    """The tests above see all of them: what is a text or an update in the module is listed."""
    found = {
        value
        for name, value in {
            **vars(expressions),
            **vars(session_expressions),
            **vars(hold_expressions),
        }.items()
        if name.isupper() and not name.startswith("_") and isinstance(value, str)
    }
    assert found == {*CONDITIONS, *PROJECTIONS}
    writes = [
        value
        for module in (expressions, hold_expressions, session_expressions)
        for value in vars(module).values()
        if isinstance(value, ConditionalUpdate)
    ]
    assert all(write in UPDATES.values() for write in writes)


@pytest.mark.parametrize(
    "update",
    [
        "SET av = av - :a + :b",
        "SET tat = tat + gi - :b",
        "SET h.#h = :a + :b - :c",
        "SET on = :one",
        "SET ttl = :ttl",
        "SET av = :a SET sp = :b",
        "SET av = :a, av = :b",
        "SET h = :m, h.#h = :a",
        "SET av = (av - :a)",
        "SET av = size(h)",
        "SET b_total = :a",
        "SET 2026 = :a",
        "SET av = av * :a",
        "SET av",
        "ADD av = :a",
        "INSERT av = :a",
    ],
)
def test_an_update_that_dynamodb_refuses_is_refused(update: str) -> None:
    with pytest.raises(NotInTheGrammar):
        Expression(update).update()


@pytest.mark.parametrize(
    "condition",
    [
        "tat + gi <= :now",
        "tat <= :now + :tau",
        "av - :a >= :zero",
        "av BETWEEN :one AND :a + :b",
        "#b - :a > :zero OR on = :one",
        "size(h) + :one < cc",
        "if_not_exists(av, :zero) > :a",
        "on = :one",
        "av >= ",
        "av => :a",
        "av",
        "(av >= :a",
        "attribute_exists(:pk)",
        "av BETWEEN :one, :a",
    ],
)
def test_a_condition_that_dynamodb_refuses_is_refused(condition: str) -> None:
    with pytest.raises(NotInTheGrammar):
        Expression(condition).condition()


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ({}, {":a": {"N": "1"}}),
        ({"#h": "x"}, {}),
        ({"#h": "x", "#unused": "y"}, {":a": {"N": "1"}}),
        ({"#h": "x"}, {":a": {"N": "1"}, ":unused": {"N": "1"}}),
    ],
)
def test_undefined_and_unused_placeholders_are_refused(
    names: dict[str, str], values: dict[str, object]
) -> None:
    with pytest.raises(NotInTheGrammar):
        check_request(
            {
                "UpdateExpression": "SET h.#h = :a",
                "ExpressionAttributeNames": names,
                "ExpressionAttributeValues": values,
            }
        )
