"""Expressions for the states of sessions; `expressions.py` has all others.

An item counts the committed amount (spent and held) instead of the remaining amount, because each
request may state a different limit. DynamoDB compares the count with the request's limit.
"""

from typing import Final

from tollgate.stores.aws.expressions import IF_ABSENT, ConditionalUpdate

SESSION_FIRST: Final = ConditionalUpdate(
    "SET h = :h, cm = :a, n = :one, ws = :ws, #ttl = :ttl", IF_ABSENT
)
SESSION_NEXT: Final = ConditionalUpdate(
    "SET h.#h = :a, cm = cm + :a, n = n + :one, #ttl = :ttl",
    "cm <= :room AND n < :most AND attribute_not_exists(h.#h) AND size(h) < :max",
)
SESSION_SETTLE: Final = ConditionalUpdate("SET cm = cm - :d, n = n - :n REMOVE h.#h", "h.#h = :a")
