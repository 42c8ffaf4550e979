"""Decide a call by the statements of a role, as AWS does.

"Policy evaluation logic" and "IAM JSON policy elements: Condition operators" in the AWS Identity
and Access Management user guide (seen 2026-11-22). Whatever a policy says that is not in the tables
below is an error: moto's engine (`moto.iam.access_control`, 5.2) passes conditions that it does not
know, takes a condition that does not hold for a Deny, and has no `?`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal

JsonObject = dict[str, Any]
# The values of the condition keys that a call has; None for a key that is known and absent.
Context = Mapping[str, tuple[str, ...] | None]

LEADING_KEYS: Final = "dynamodb:LeadingKeys"
# Set by a service that calls another for us, and by nobody else.
VIA_SERVICE: Final = "kms:ViaService"
MANTLE_MODEL: Final = "bedrock-mantle:Model"
PASSED_TO: Final = "iam:PassedToService"
CONDITION_KEYS: Final = frozenset({LEADING_KEYS, MANTLE_MODEL, PASSED_TO, VIA_SERVICE})
_ELEMENTS: Final = frozenset({"Effect", "Action", "Resource", "Condition", "Sid"})


class UnknownPolicy(ValueError):
    """A policy has an element, an operator or a condition key that cannot be decided here."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One action on one resource that a statement of a role allows."""

    role: str
    statement: int
    action: str
    resource: str
    condition: str

    def __str__(self) -> str:
        where = f" where {self.condition}" if self.condition else ""
        return f"{self.role}: {self.action} on {self.resource}{where}"


@dataclass(frozen=True, slots=True)
class Access:
    """One action on one resource, and the condition keys that its call has."""

    action: str
    resource: str
    context: Context = field(hash=False)

    def __str__(self) -> str:
        values = "".join(f" with {key} {value}" for key, value in self.context.items() if value)
        return f"{self.action} on {self.resource}{values}"


@dataclass(frozen=True, slots=True)
class Condition:
    """One operator on one key."""

    operator: str
    key: str
    values: tuple[str, ...]

    def holds(self, context: Context) -> bool:
        """Decide it; UnknownPolicy if nothing says whether a call has such a key."""
        if self.key not in context:
            raise UnknownPolicy(f"no value is known for {self.key}")
        found = context[self.key]
        if self.operator == "Null":
            return (found is None) == (self.values == ("true",))
        quantifier, _, name = self.operator.rpartition(":")
        matches = OPERATORS[name]
        matched = [any(matches(it, value) for it in self.values) for value in found or ()]
        # An absent key: ForAllValues holds, and both of the others do not.
        if quantifier == "ForAllValues":
            return all(matched)
        if quantifier == "ForAnyValue":
            return any(matched)
        return found is not None and len(found) == 1 and all(matched)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a role."""

    role: str
    number: int
    effect: Literal["Allow", "Deny"]
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: tuple[Condition, ...]

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Each of its actions on each of its resources."""
        where = " and ".join(f"{it.operator} {it.key} {list(it.values)}" for it in self.conditions)
        return tuple(
            Grant(self.role, self.number, action, resource, where)
            for action in self.actions
            for resource in self.resources
        )

    def matching(self, access: Access) -> list[Grant]:
        """Return those of its grants that match an access under its conditions."""
        matched = [
            grant
            for grant in self.grants
            if _matches_glob(grant.action.lower(), access.action.lower())
            and _matches_glob(grant.resource, access.resource)
        ]
        if not matched or not all(it.holds(access.context) for it in self.conditions):
            return []
        return matched


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a call is allowed, the grants that allow it, and the reason where it is not."""

    grants: tuple[Grant, ...]
    refusal: str | None = None


def parse_statements(role: str, statements: Sequence[JsonObject]) -> tuple[Statement, ...]:
    """Return the statements of a role, whose resources are ARNs; raise UnknownPolicy."""
    return tuple(_parse(role, number, it) for number, it in enumerate(statements))


def decide(statements: Sequence[Statement], access: Access) -> Decision:
    """Decide one access: a Deny wins, and what no statement allows is refused."""
    for statement in statements:
        if statement.effect == "Deny" and statement.matching(access):
            return Decision((), f"an explicit deny refuses {access}")
    granted = tuple(
        grant
        for statement in statements
        if statement.effect == "Allow"
        for grant in statement.matching(access)
    )
    return Decision(granted, None if granted else f"no statement allows {access}")


def _parse(role: str, number: int, statement: JsonObject) -> Statement:
    unknown = statement.keys() - _ELEMENTS
    if unknown or statement["Effect"] not in ("Allow", "Deny"):
        raise UnknownPolicy(f"{role}, statement {number}: {sorted(unknown) or statement['Effect']}")
    return Statement(
        role=role,
        number=number,
        effect=statement["Effect"],
        actions=_texts(statement["Action"]),
        resources=_texts(statement["Resource"]),
        conditions=tuple(
            _parse_condition(operator, key, values)
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        ),
    )


def _parse_condition(operator: str, key: str, values: object) -> Condition:
    quantifier, _, name = operator.rpartition(":")
    is_known = name in OPERATORS and quantifier in ("", "ForAllValues", "ForAnyValue")
    if not (is_known or operator == "Null") or key not in CONDITION_KEYS:
        raise UnknownPolicy(f"the condition {operator} on {key}")
    condition = Condition(operator, key, _texts(values))
    if operator == "Null" and condition.values not in (("true",), ("false",)):
        raise UnknownPolicy(f"Null on {key} is {condition.values}")
    return condition


def _texts(value: object) -> tuple[str, ...]:
    """Return one text or a list of them; a policy variable is an error."""
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str) or "${" in text:
            raise UnknownPolicy(f"cannot decide {text!r}")
    return tuple(texts)


@cache
def _compile_glob(glob: str) -> re.Pattern[str]:
    """Return a pattern in which `*` is any text and `?` is one character, and nothing else is."""
    parts = (".*" if it == "*" else "." if it == "?" else re.escape(it) for it in glob)
    return re.compile("".join(parts), re.DOTALL)


def _matches_glob(glob: str, text: str) -> bool:
    return _compile_glob(glob).fullmatch(text) is not None


def _equals(expected: str, value: str) -> bool:
    return expected == value


OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "StringEquals": _equals,
    "StringLike": _matches_glob,
}
