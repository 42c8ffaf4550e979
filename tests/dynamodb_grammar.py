"""A parser for DynamoDB's expressions as its documentation states them, stricter than emulators.

Sources, seen 2026-11-21, all in the Amazon DynamoDB developer guide: "Update expressions",
"Condition and filter expressions, operators, and functions", "Expression attribute names",
"Reserved words". Reserved words themselves come from moto, which lists all 573.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

_TOKEN = re.compile(r"\s*([#:]?[A-Za-z0-9_]+|<>|<=|>=|[-+=<>(),.\[\]])")
# An unaliased name starts with a letter, then letters and digits ("Expression attribute names").
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*$")
_COMPARATORS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_CONDITION_FUNCTIONS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
}
_EXPRESSION_BYTES_MAX = 4096


@cache
def _reserved_words() -> frozenset[str]:
    # moto imports boto3, which half of the tests would wait for and never use.
    from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

    return frozenset(ReservedKeywords.get_reserved_keywords())


class NotInTheGrammar(Exception):
    """DynamoDB would refuse this with a ValidationException."""


@dataclass
class Expression:
    """One expression being read, with the aliases and values it has used so far."""

    text: str
    aliases: Mapping[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    paths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.text.encode()) > _EXPRESSION_BYTES_MAX:
            raise NotInTheGrammar("longer than 4 KB")
        self._tokens = _tokens(self.text)
        self._at = 0

    def update(self) -> "Expression":
        """update-expression: each of SET, REMOVE, ADD, DELETE at most once."""
        seen: set[str] = set()
        targets: list[str] = []
        while self._peek():
            clause = self._next().upper()
            if clause in seen or clause not in ("SET", "REMOVE", "ADD", "DELETE"):
                raise NotInTheGrammar(f"unexpected {clause} in {self.text!r}")
            seen.add(clause)
            while True:
                parts = self._path().split(".")
                targets.append(".".join(self.aliases.get(part, part) for part in parts))
                if clause == "SET":
                    self._expect("=")
                    self._set_value()
                elif clause in ("ADD", "DELETE"):
                    self._value()
                if self._peek() != ",":
                    break
                self._next()
        for target in targets:
            for other in targets:
                if target is not other and f"{other}.".startswith(f"{target}."):
                    raise NotInTheGrammar(f"two document paths overlap: {target}, {other}")
        return self

    def condition(self) -> "Expression":
        """condition-expression, also the grammar of filters and key conditions."""
        self._or()
        if self._peek():
            raise NotInTheGrammar(f"{self._peek()!r} is left over in {self.text!r}")
        return self

    def projection(self) -> "Expression":
        """A list of paths."""
        self._path()
        while self._peek() == ",":
            self._next()
            self._path()
        if self._peek():
            raise NotInTheGrammar(f"{self._peek()!r} is left over in {self.text!r}")
        return self

    def _set_value(self) -> None:
        self._set_operand()
        if self._peek() in ("+", "-"):
            self._next()
            self._set_operand()
        if self._peek() in ("+", "-"):
            raise NotInTheGrammar(f"two operators in one SET action: {self.text!r}")

    def _set_operand(self) -> None:
        if self._peek(1) == "(":
            function = self._next()
            if function not in ("if_not_exists", "list_append"):
                raise NotInTheGrammar(f"{function} is no function of SET")
            self._expect("(")
            if function == "if_not_exists":
                self._path()
            else:
                self._set_operand()
            self._expect(",")
            self._set_operand()
            self._expect(")")
        elif self._peek().startswith(":"):
            self._value()
        else:
            self._path()

    def _or(self) -> None:
        self._and()
        while self._peek().upper() == "OR":
            self._next()
            self._and()

    def _and(self) -> None:
        self._not()
        while self._peek().upper() == "AND":
            self._next()
            self._not()

    def _not(self) -> None:
        while self._peek().upper() == "NOT":
            self._next()
        if self._peek() == "(":
            self._next()
            self._or()
            self._expect(")")
        elif self._peek() in _CONDITION_FUNCTIONS and self._peek(1) == "(":
            arguments = _CONDITION_FUNCTIONS[self._next()]
            self._expect("(")
            self._path()
            if arguments == 2:
                self._expect(",")
                self._operand()
            self._expect(")")
        else:
            self._comparison()

    def _comparison(self) -> None:
        self._operand()
        comparator = self._next()
        if comparator.upper() == "BETWEEN":
            self._operand()
            if self._next().upper() != "AND":
                raise NotInTheGrammar(f"BETWEEN without AND in {self.text!r}")
            self._operand()
        elif comparator.upper() == "IN":
            self._expect("(")
            self._operand()
            while self._peek() == ",":
                self._next()
                self._operand()
            self._expect(")")
        elif comparator in _COMPARATORS:
            self._operand()
        else:
            raise NotInTheGrammar(f"{comparator!r} is no comparator: {self.text!r}")
        if self._peek() in ("+", "-"):
            raise NotInTheGrammar(f"arithmetic in a condition: {self.text!r}")

    def _operand(self) -> None:
        if self._peek() == "size" and self._peek(1) == "(":
            self._next()
            self._expect("(")
            self._path()
            self._expect(")")
        elif self._peek().startswith(":"):
            self._value()
        else:
            self._path()

    def _value(self) -> None:
        token = self._next()
        if not token.startswith(":"):
            raise NotInTheGrammar(f"{token!r} is no value in {self.text!r}")
        self.values.add(token)

    def _path(self) -> str:
        parts = [self._name()]
        while self._peek() in (".", "["):
            if self._next() == ".":
                parts.append(self._name())
            else:
                parts.append(self._next())
                self._expect("]")
        path = ".".join(parts)
        self.paths.append(path)
        return path

    def _name(self) -> str:
        token = self._next()
        if token.startswith("#"):
            self.names.add(token)
        elif not _PLAIN_NAME.match(token):
            raise NotInTheGrammar(f"{token!r} is no attribute name in {self.text!r}")
        elif token.upper() in _reserved_words():
            raise NotInTheGrammar(f"{token!r} is a reserved word: alias it")
        return token

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise NotInTheGrammar(f"{self.text!r} ends too early")
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise NotInTheGrammar(f"expected {token!r} in {self.text!r}")


def _tokens(text: str) -> list[str]:
    tokens, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotInTheGrammar(f"cannot read {text[at:]!r}")
        tokens.append(match.group(1))
        at = match.end()
    return tokens


def check_request(payload: Mapping[str, Any]) -> None:
    """Check all expressions of one request, of each action if it is a transaction.

    Every alias and value must be defined, and every definition used.
    """
    for action in payload.get("TransactItems", ()):
        for request in action.values():
            check_request(request)
    expressions = [
        Expression(payload[name]).condition()
        for name in ("ConditionExpression", "FilterExpression", "KeyConditionExpression")
        if name in payload
    ]
    if "UpdateExpression" in payload:
        aliases = payload.get("ExpressionAttributeNames", {})
        expressions.append(Expression(payload["UpdateExpression"], aliases).update())
    if "ProjectionExpression" in payload:
        expressions.append(Expression(payload["ProjectionExpression"]).projection())
    for kind, used in (
        ("ExpressionAttributeNames", {name for found in expressions for name in found.names}),
        ("ExpressionAttributeValues", {name for found in expressions for name in found.values}),
    ):
        defined = set(payload.get(kind, ()))
        if used != defined:
            raise NotInTheGrammar(f"{kind}: used {sorted(used)}, defined {sorted(defined)}")
