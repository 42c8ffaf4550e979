"""Evaluates the expressions of Tollgate's writes on items in memory.

An expression is read once; its aliases and values differ with each call. Reading follows
`tests/dynamodb_grammar.py`, which holds every expression to DynamoDB's grammar.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tollgate.aws.attributes import Item

Value = dict[str, Any]
Names = Mapping[str, str]
Values = Mapping[str, Value]
Operand = Callable[[Item, Names, Values], Value | None]
Condition = Callable[[Item, Names, Values], bool]
Path = tuple[str, ...]

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda one, other: one == other,
    "<>": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


class Update:
    """An update expression: what it sets, in order, and what it removes."""

    def __init__(self, sets: list[tuple[Path, Operand]], removes: list[Path]) -> None:
        self.sets = sets
        self.removes = removes


def find(item: Item, path: Path, names: Names) -> Value | None:
    """Return the value at a path, None without one."""
    value: Any = item.get(names.get(path[0], path[0]))
    for part in path[1:]:
        if value is None:
            return None
        value = value["M"].get(names.get(part, part))
    return value


@cache
def condition_of(text: str) -> Condition:
    """Return the predicate of a condition or a filter."""
    reader = _Reader(text)
    condition = reader.any_of()
    assert reader.at_end, text
    return condition


@cache
def update_of(text: str) -> Update:
    """Return the actions of an update expression."""
    return _Reader(text).update()


class _Reader:
    def __init__(self, text: str) -> None:
        # Imported here: the parser's module loads nothing else, and reads with one pattern.
        from tests.dynamodb_grammar import _tokens

        self._tokens = _tokens(text)
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._tokens)

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _accept(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._at += 1
        return True

    def update(self) -> Update:
        sets: list[tuple[Path, Operand]] = []
        removes: list[Path] = []
        while not self.at_end:
            clause = self._next()
            while True:
                path = self._path()
                if clause == "SET":
                    assert self._next() == "="
                    sets.append((path, self._sum()))
                else:
                    assert clause == "REMOVE", clause
                    removes.append(path)
                if not self._accept(","):
                    break
        return Update(sets, removes)

    def _sum(self) -> Operand:
        left = self._operand()
        if self._peek() not in ("+", "-"):
            return left
        sign = 1 if self._next() == "+" else -1
        right = self._operand()

        def total(item: Item, names: Names, values: Values) -> Value:
            one, other = left(item, names, values), right(item, names, values)
            assert one is not None, f"an operand is missing in {self._tokens}"
            assert other is not None, f"an operand is missing in {self._tokens}"
            return {"N": str(int(one["N"]) + sign * int(other["N"]))}

        return total

    def _operand(self) -> Operand:
        if self._peek(1) == "(":
            function = self._next()
            self._next()
            path = self._path()
            if function == "size":
                self._next()

                def size(item: Item, names: Names, values: Values) -> Value | None:
                    value = find(item, path, names)
                    return None if value is None else {"N": str(len(next(iter(value.values()))))}

                return size
            assert function == "if_not_exists", function
            self._next()
            otherwise = self._operand()
            self._next()

            def if_not_exists(item: Item, names: Names, values: Values) -> Value | None:
                found = find(item, path, names)
                return otherwise(item, names, values) if found is None else found

            return if_not_exists
        if self._peek().startswith(":"):
            name = self._next()
            return lambda item, names, values: values[name]
        path = self._path()
        return lambda item, names, values: find(item, path, names)

    def _path(self) -> Path:
        parts = [self._next()]
        while self._accept("."):
            parts.append(self._next())
        return tuple(parts)

    def any_of(self) -> Condition:
        terms = [self._all_of()]
        while self._accept("OR"):
            terms.append(self._all_of())
        if len(terms) == 1:
            return terms[0]
        return lambda item, names, values: any(term(item, names, values) for term in terms)

    def _all_of(self) -> Condition:
        terms = [self._term()]
        while self._accept("AND"):
            terms.append(self._term())
        if len(terms) == 1:
            return terms[0]
        return lambda item, names, values: all(term(item, names, values) for term in terms)

    def _term(self) -> Condition:
        if self._accept("NOT"):
            term = self._term()
            return lambda item, names, values: not term(item, names, values)
        if self._accept("("):
            inner = self.any_of()
            assert self._next() == ")"
            return inner
        if self._peek() in ("attribute_exists", "attribute_not_exists", "begins_with"):
            return self._function()
        left = self._operand()
        comparator = self._next()
        if comparator == "BETWEEN":
            low = self._operand()
            assert self._next() == "AND"
            high = self._operand()

            def between(item: Item, names: Names, values: Values) -> bool:
                value = _plain(left(item, names, values))
                ends = _plain(low(item, names, values)), _plain(high(item, names, values))
                return value is not None and bool(ends[0] <= value <= ends[1])

            return between
        right, compare = self._operand(), _COMPARE[comparator]

        def compared(item: Item, names: Names, values: Values) -> bool:
            one, other = left(item, names, values), right(item, names, values)
            if one is None or other is None:
                return comparator == "<>"
            return compare(_plain(one), _plain(other))

        return compared

    def _function(self) -> Condition:
        function = self._next()
        self._next()
        path = self._path()
        if function == "begins_with":
            self._next()
            prefix = self._next()
            self._next()

            def begins(item: Item, names: Names, values: Values) -> bool:
                value = find(item, path, names)
                return value is not None and value["S"].startswith(values[prefix]["S"])

            return begins
        self._next()
        exists = function == "attribute_exists"
        return lambda item, names, values: (find(item, path, names) is not None) is exists


def _plain(value: Value | None) -> Any:
    if value is None:
        return None
    kind, content = next(iter(value.items()))
    return int(content) if kind == "N" else content
