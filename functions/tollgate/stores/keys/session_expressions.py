"""Expressions for the states of sessions, and for the address of a key's last use;
`expressions.py` has all others.

A session's item counts the committed amount (spent and held) instead of the remaining amount,
because each request may state a different limit. DynamoDB compares the count with the request's
limit.
"""

from typing import Final

from tollgate.stores.aws.expressions import IF_ABSENT, IF_PRESENT, ConditionalUpdate

SESSION_FIRST: Final = ConditionalUpdate(
    "SET h = :h, cm = :a, n = :one, ws = :ws, #ttl = :ttl", IF_ABSENT
)
SESSION_NEXT: Final = ConditionalUpdate(
    "SET h.#h = :a, cm = cm + :a, n = n + :one, #ttl = :ttl",
    "cm <= :room AND n < :most AND attribute_not_exists(h.#h) AND size(h) < :max",
)
SESSION_SETTLE: Final = ConditionalUpdate("SET cm = cm - :d, n = n - :n REMOVE h.#h", "h.#h = :a")
KEY_ADDRESS: Final = ConditionalUpdate("SET ad = :ad, adt = :second", IF_PRESENT)
KEY_ADDRESS_FORGET: Final = ConditionalUpdate("REMOVE ad, adt", "ad = :ad")
