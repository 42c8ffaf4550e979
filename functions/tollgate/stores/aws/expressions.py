"""Every expression sent to DynamoDB, except those of holds on keys and sessions, which are in
`keys/hold_expressions.py` and `keys/session_expressions.py`. A test parses all of them.

The expressions obey DynamoDB's own grammar, which is stricter than an emulator's: a SET operand
pair has one operator, a condition has no arithmetic, reserved words are aliased ("Update
expressions", "Condition and filter expressions" in the Amazon DynamoDB developer guide, seen
2026-11-21).

Attribute names are written literally, as DynamoDB receives them. `items.py` states the meaning of
each name, and a test checks that each name is defined there.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from tollgate.aws.attributes import AttributeValue, Item


class ConditionalUpdate(Struct, frozen=True):
    """An update expression and its condition."""

    update: str
    condition: str

    def build(
        self,
        table: str,
        key: Item,
        values: Mapping[str, AttributeValue],
        names: Mapping[str, str] | None = None,
    ) -> dict[str, object]:
        """Return the parameters of an `UpdateItem` call, or of an `Update` action."""
        parameters: dict[str, object] = {
            "TableName": table,
            "Key": key,
            "UpdateExpression": self.update,
            "ConditionExpression": self.condition,
            "ExpressionAttributeValues": values,
        }
        if names:
            parameters["ExpressionAttributeNames"] = names
        return parameters


IF_ABSENT: Final = "attribute_not_exists(pk)"
IF_PRESENT: Final = "attribute_exists(pk)"
SAME_REVISION: Final = "rev = :rev"
LATER_LOOK: Final = "attribute_not_exists(pk) OR rev < :rev OR (rev = :rev AND num < :num)"
ITEMS_RAISE: Final = ConditionalUpdate("SET iv = :iv", "attribute_not_exists(iv) OR iv < :iv")

WALLET_HOLD: Final = ConditionalUpdate(
    "SET av = av - :a, h.#h = :a",
    "lk = :zero AND av >= :a AND attribute_not_exists(h.#h) AND size(h) < :max",
)
# DynamoDB reads all operands before it sets an attribute. The copy of `av` still comes first, for
# emulators that set attributes in order.
WALLET_HOLD_REST: Final = ConditionalUpdate(
    "SET h.#h = av, av = :zero",
    "lk = :zero AND av BETWEEN :one AND :a AND attribute_not_exists(h.#h) AND size(h) < :max",
)
WALLET_SETTLE: Final = ConditionalUpdate("SET av = av + :d, sp = sp + :c REMOVE h.#h", "h.#h = :a")
WALLET_SETTLE_CROWDED: Final = ConditionalUpdate(
    "SET av = av + :d, sp = sp + :c, cr = :one REMOVE h.#h", "h.#h = :a"
)
# The amount of a hold only grows, so the condition fails if an applied top-up is retried.
WALLET_TOP_UP: Final = ConditionalUpdate(
    "SET av = av - :x, h.#h = :b", "lk = :zero AND h.#h = :a AND av >= :x"
)
WALLET_GRANT: Final = ConditionalUpdate("SET av = av + :x, gr = gr + :x", IF_PRESENT)
WALLET_TAKE: Final = ConditionalUpdate("SET av = av - :x, gr = gr - :x", "av >= :x")
WALLET_LOCK: Final = ConditionalUpdate("SET lk = :lk", IF_PRESENT)
WALLET_UNCROWD: Final = ConditionalUpdate("REMOVE cr", IF_PRESENT)

KEY_USED: Final = ConditionalUpdate("SET #used = :second", IF_PRESENT)
KEY_DISABLE: Final = ConditionalUpdate("SET #on = :zero", IF_PRESENT)
# The tombstone stores the key's total spending, so `us` must be the value that was read.
KEY_DELETE: Final = "size(h) = :zero AND #on = :zero AND us = :us"

# After a lost reply the claim is retried: the item then has the same request id (`gid`).
CLAIM_FREE: Final = (
    "attribute_not_exists(pk) OR gid = :gid OR #ttl < :now OR (#st = :running AND #at < :dead)"
)
CLAIM_MINE: Final = "gid = :gid"
CLAIM_DONE: Final = ConditionalUpdate("SET #st = :done", CLAIM_MINE)
# A retry after a lost reply finds the upload's id in `h`, so the upload is counted once.
FILE_RESERVE: Final = ConditionalUpdate(
    "SET n = n + :one, b = b + :x, h.#h = :x",
    "n < :files AND b <= :room AND attribute_not_exists(h.#h) AND size(h) < :max",
)
FILE_COMMIT: Final = ConditionalUpdate("REMOVE h.#h", "h.#h = :x")
FILE_RELEASE: Final = ConditionalUpdate("SET n = n - :one, b = b - :x REMOVE h.#h", "h.#h = :x")
FILE_FREE: Final = ConditionalUpdate("SET n = n - :one, b = b - :x", "n >= :one AND b >= :x")
FILE_ARRIVED: Final = ConditionalUpdate("SET mt = :mt REMOVE aw", "attribute_exists(aw)")
# `FILE_PART` also counts repeated parts, which a client sent twice and which are never joined.
FILE_PART: Final = ConditionalUpdate(
    "SET h.#h = :x, sb = sb + :x",
    "attribute_exists(aw) AND attribute_not_exists(jn) AND size(h) < :max AND sb <= :room",
)
FILE_JOINING: Final = ConditionalUpdate(
    "SET jn = :jn", "attribute_exists(h) AND (attribute_not_exists(jn) OR jn = :jn)"
)
FILE_APART: Final = ConditionalUpdate("REMOVE jn", "attribute_exists(h) AND jn = :jn")
FILE_JOINED: Final = ConditionalUpdate(
    "SET mt = :mt REMOVE aw, h, sb",
    "attribute_exists(h) AND jn = :jn AND attribute_not_exists(going)",
)
# If several deletions run at the same time, one succeeds.
FILE_PARTS_DELETING: Final = ConditionalUpdate(
    "SET going = :now", "attribute_exists(h) AND attribute_not_exists(going)"
)
FILE_DELETING: Final = ConditionalUpdate(
    "SET going = :now", f"{IF_PRESENT} AND attribute_not_exists(going)"
)
# During and after a cooldown, failures are added to the count even if their window has ended. Only
# an answer of the endpoint resets the count.
COOLDOWN_ANOTHER: Final = ConditionalUpdate(
    "SET n = n + :one, l = :now, k = :fault", "w > :since OR (n >= :most AND l > :old)"
)
COOLDOWN_FIRST: Final = ConditionalUpdate(
    "SET n = :one, l = :now, w = :now, k = :fault REMOVE p, r",
    "attribute_not_exists(w) OR (w <= :since AND (n < :most OR l <= :old))",
)
COOLDOWN_PROBE: Final = ConditionalUpdate(
    "SET p = :now, r = if_not_exists(r, :zero) + :one",
    "l = :l AND n >= :most AND (attribute_not_exists(p) OR p = :p)",
)
COOLDOWN_UNPROBED: Final = ConditionalUpdate("SET r = r - :one REMOVE p", "l = :l AND p = :p")
COOLDOWN_OVER: Final = ConditionalUpdate("SET n = :zero, k = :fault REMOVE p, r", "l = :l")
COOLDOWN_KEY_WORKS: Final = ConditionalUpdate("SET k = :fault", "attribute_exists(k)")

_SPEED_OF_WINDOW: Final = "n = :n, f = :f, t = :t, d = :d, i = :i, c = :c, w = :w"
SPEED_MORE: Final = ConditionalUpdate(
    "SET n = n + :n, f = f + :f, t = t + :t, d = d + :d,"
    " i = if_not_exists(i, :zero) + :i, c = if_not_exists(c, :zero) + :c",
    "w = :w OR (n < :few AND w > :old)",
)
SPEED_NEXT: Final = ConditionalUpdate(
    "SET pw = w, pn = n, pf = f, pt = t, pd = d, pi = if_not_exists(i, :zero),"
    f" pc = if_not_exists(c, :zero), {_SPEED_OF_WINDOW}",
    "w < :w AND (n >= :few OR w <= :old)",
)
SPEED_FIRST: Final = ConditionalUpdate(f"SET {_SPEED_OF_WINDOW}", "attribute_not_exists(w)")

# A change is applied at most once, and never after a later change.
_REVISION_BEFORE: Final = "(attribute_not_exists(rv) OR rv < :rv)"


def key_change(
    plain: Sequence[str],
    limits: Mapping[str, tuple[int, int]],
    *,
    if_revision: str = _REVISION_BEFORE,
) -> ConditionalUpdate:
    """Build the write that sets the attributes `plain` and new limits.

    `limits` maps a limit's attribute to two counts of live buckets: the existing ones (`#ld0`,
    `#ld1`…), which are raised or lowered together with the limit, and the missing ones (`#nold0`…),
    which must stay absent: a bucket created in the meantime would start from the old limit.
    """
    sets = ["rv = :rv", *(f"#{name} = :{name}" for name in plain)]
    conditions = [IF_PRESENT, if_revision]
    for limit, (existing, absent) in limits.items():
        sets.append(f"{limit} = :{limit}")
        conditions.append(f"{limit} = :old{limit}")
        for index in range(existing):
            sets.append(f"#{limit}{index} = #{limit}{index} + :more{limit}")
            conditions.append(f"attribute_exists(#{limit}{index})")
        conditions += [f"attribute_not_exists(#no{limit}{index})" for index in range(absent)]
    return ConditionalUpdate(f"SET {', '.join(sets)}", " AND ".join(conditions))


def slice_change(
    plain: Sequence[str],
    limits: Mapping[str, tuple[int, int]],
    room: Mapping[str, int],
    *,
    same_revision: bool,
    fewer: bool,
    shifts: bool,
) -> ConditionalUpdate:
    """Build the write that gives a slice its new part of the limits: a `key_change` with guards.

    The amount that the slice gives up must still be unused: for each limit in `room`, the bucket
    with that index must have at least `:room<limit>` left, and if `fewer`, the number of holds must
    not exceed the new `cc`. With `same_revision` the slice must already have the revision `:rv`,
    otherwise an earlier revision. With `shifts` the rate's bucket changes its size but is full
    again at the same time (`tat`), which must not be after `:full`.
    """
    if_revision = "rv = :rv" if same_revision else _REVISION_BEFORE
    change = key_change(plain, limits, if_revision=if_revision)
    update = f"{change.update}, ra = ra + :shift" if shifts else change.update
    guards = [f"#{limit}{index} >= :room{limit}" for limit, index in room.items()]
    if "cc" in plain:
        guards.append("cc = :oldcc")
    if fewer:
        guards.append("size(h) <= :cc")
    if shifts:
        guards.append("tat <= :full")
    return ConditionalUpdate(update, " AND ".join((change.condition, *guards)))


def same_values(present: Sequence[str], absent: Sequence[str]) -> str:
    """Build the condition that an item has the values `:was_<name>` and lacks `absent`."""
    return " AND ".join(
        [
            IF_PRESENT,
            *(f"#{name} = :was_{name}" for name in present),
            *(f"attribute_not_exists(#{name})" for name in absent),
        ]
    )


def set_and_remove(
    present: Sequence[str], absent: Sequence[str], condition: str
) -> ConditionalUpdate:
    """Build the write that sets the attributes `present` of an item and removes `absent`."""
    parts = (
        "SET " + ", ".join(f"#{name} = :{name}" for name in present) if present else "",
        "REMOVE " + ", ".join(f"#{name}" for name in absent) if absent else "",
    )
    return ConditionalUpdate(" ".join(part for part in parts if part), condition)


# If the hash or the revision differs, the key was rotated, changed or deleted after the read.
SAME_HASH: Final = "#hash = :samehash"
_NOT_DELETED: Final = f"{SAME_HASH} AND attribute_not_exists(going)"
UNCHANGED: Final = f"{_NOT_DELETED} AND attribute_not_exists(rev)"
SAME_CHANGE: Final = f"{_NOT_DELETED} AND rev = :samerev"
KEY_APPLIED: Final = ConditionalUpdate("REMOVE want", "rev = :rev")
# The condition that the team or member exists. A removed team or member leaves a permanent
# tombstone with `gone`.
LEVEL_THERE: Final = "attribute_exists(pk) AND attribute_not_exists(gone)"
SAME_LEVEL: Final = f"{LEVEL_THERE} AND rev = :rev"
# `jo` counts joins: after its members and keys were counted, a team is deleted only if no other
# member or key has joined.
TEAM_JOIN: Final = ConditionalUpdate("SET jo = jo + :one", LEVEL_THERE)
TEAM_DELETE: Final = ConditionalUpdate("SET gone = :now", f"{LEVEL_THERE} AND jo = :jo")
MEMBER_REMOVE: Final = ConditionalUpdate("SET gone = :now", LEVEL_THERE)
MEMBER_FORGET: Final = ConditionalUpdate(
    "SET cfg = :cfg, gone = if_not_exists(gone, :now) REMOVE sj", "rev = :rev"
)
SAME_STANDING: Final = "subj = :was"
MEMBER_LINK: Final = ConditionalUpdate(
    "SET sj = :sj", f"{LEVEL_THERE} AND attribute_not_exists(sj)"
)
MEMBER_SESSION_KEY: Final = ConditionalUpdate(
    "SET skid = :kid", f"{LEVEL_THERE} AND (attribute_not_exists(skid) OR skid = :was)"
)
# If a level loses its limits, its holds are no longer counted, unless the level has slices.
# Therefore the change requires the number of slices that was read.
LEVEL_CHANGE: Final = ConditionalUpdate(
    "SET cfg = :cfg, rev = :rev",
    f"{LEVEL_THERE} AND rev = :was AND (attribute_not_exists(sl) OR sl = :sl)",
)
LEVEL_CHANGE_PENDING: Final = ConditionalUpdate(
    "SET cfg = :cfg, rev = :rev, want = :one", f"{LEVEL_THERE} AND rev = :was"
)
# New slices copy the settings of the state, so no change of settings may be pending (`want`).
_LEVEL_SETTLED: Final = f"{SAME_LEVEL} AND attribute_not_exists(want)"
LEVEL_GROW_FIRST: Final = ConditionalUpdate(
    "SET sl = :new", f"{_LEVEL_SETTLED} AND attribute_not_exists(sl)"
)
LEVEL_GROW: Final = ConditionalUpdate("SET sl = :new", f"{_LEVEL_SETTLED} AND sl = :was")
# Re-seed an existing state only if its spending and holds are unchanged, so that a settlement in
# the meantime makes the write fail.
STATE_SEED: Final = "attribute_not_exists(pk) OR (us = :us AND h = :h)"
# Sessions of an earlier round are over, however many there are.
MEMBER_END_SESSIONS: Final = ConditionalUpdate(
    "SET rd = if_not_exists(rd, :zero) + :one", LEVEL_THERE
)
SIGN_IN_RENEW: Final = ConditionalUpdate(
    "SET rn = :now, ex = :ex, #ttl = :ex, oa = :oa", IF_PRESENT
)
SESSION_THERE: Final = "attribute_exists(kh)"
SAME_KEY: Final = "kid = :kid"
WORKSPACE_GROW: Final = ConditionalUpdate("SET n = :new", "n = :n AND lk = :lk")
WORKSPACE_LOCK: Final = ConditionalUpdate("SET lk = :lk", "lk = :was")
WORKSPACE_LEND: Final = ConditionalUpdate("SET cl = :new", "cl = :old")
# A credit limit that was removed is stored as 0.
WORKSPACE_LEND_FIRST: Final = ConditionalUpdate(
    "SET cl = :new", f"{IF_PRESENT} AND (attribute_not_exists(cl) OR cl = :zero)"
)
WORKSPACE_COPIED: Final = ConditionalUpdate("SET told = :told", IF_PRESENT)
_OF_WORKSPACE: Final = "n = :n, wrd = :wrd, wip = :wip, wkd = :wkd, wuo = :wuo"
SECRET_COPY_ADMISSION: Final = ConditionalUpdate(f"SET {_OF_WORKSPACE}, adm = :adm", IF_PRESENT)
SECRET_COPY_NO_ADMISSION: Final = ConditionalUpdate(f"SET {_OF_WORKSPACE} REMOVE adm", IF_PRESENT)
ALERT_LEASE: Final = ConditionalUpdate(
    "SET #lease = :until",
    "attribute_not_exists(#at) AND (attribute_not_exists(#lease) OR #lease < :now)",
)
ALERT_SENT: Final = ConditionalUpdate("SET #at = :now", IF_PRESENT)

# DynamoDB deletes expired items late, so an expired item counts as missing.
UNLESS_CURRENT: Final = f"{IF_ABSENT} OR ex <= :now"
CODE_REPLACE: Final = ConditionalUpdate(
    "SET v = :new, ex = :ends, #ttl = :ends", "v = :old AND ex > :now"
)
CODE_REPLACE_AND_KEEP: Final = ConditionalUpdate("SET v = :new", "v = :old AND ex > :now")
CODE_COUNT: Final = ConditionalUpdate(
    "SET n = if_not_exists(n, :zero) + :one, #ttl = :ends",
    "attribute_not_exists(n) OR n < :most",
)
WEBHOOK_CHANGE: Final = ConditionalUpdate("SET hook = :hook, rev = :new", "rev = :rev")
# A re-enabled webhook gets events from now on, but not those from the time when it was disabled.
WEBHOOK_ENABLE: Final = ConditionalUpdate(
    "SET hook = :hook, rev = :new, cur = :cur REMOVE fl", "rev = :rev"
)
WEBHOOK_CURSOR: Final = ConditionalUpdate("SET cur = :cur", "cur < :cur")
WEBHOOK_TAKES: Final = ConditionalUpdate("SET dl = :now REMOVE fl", IF_PRESENT)
WEBHOOK_FAILS: Final = ConditionalUpdate("SET fl = if_not_exists(fl, :now)", IF_PRESENT)
# Only one process attempts a delivery: for all others the condition fails, because `nx` (the time
# of the next attempt) has changed.
DELIVERY_CLAIM: Final = ConditionalUpdate("SET nx = :next, way = :way", "nx = :was")
DELIVERY_NOTE: Final = ConditionalUpdate("SET way = :way", "nx = :was")

ROWS_OF_PARTITION: Final = "pk = :pk AND begins_with(sk, :prefix)"
ROWS_BETWEEN: Final = "pk = :pk AND sk BETWEEN :low AND :high"
HAS_HOLDS: Final = "size(h) > :zero"
HOLDS_PROJECTION: Final = "pk, sk, ws, h"
