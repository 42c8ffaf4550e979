"""Unknown fields drawn from a seed, and what tests of their way to a provider and back compare."""

import json
from random import Random
from typing import Any

from tests.asgi import Exchange

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhg"
    "GAWjR9awAAAABJRU5ErkJggg=="
)


class Draw:
    """Draws unknown fields from a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._number = 0

    def fields(self) -> dict[str, Any]:
        self._number += 1
        count = self._chance.randint(1, 3)
        return {f"zz_{self._number}_{place}": self._value(3) for place in range(count)}

    def _value(self, depth: int) -> Any:
        kinds = ["text", "number", "flag", *(["list", "object"] if depth else [])]
        match self._chance.choice(kinds):
            case "text":
                return "".join(self._chance.choices('ab "\\\n\u00e9', k=5))
            case "number":
                return self._chance.randint(-9, 9)
            case "flag":
                return self._chance.random() < 0.5
            case "list":
                return [self._value(depth - 1) for _ in range(self._chance.randint(0, 2))]
            case _:
                return self.fields()


def events(reply: Exchange) -> list[Any]:
    return [
        json.loads(line.removeprefix("data: "))
        for line in reply.body.decode().splitlines()
        if line.startswith("data: {")
    ]


def includes(whole: Any, part: Any) -> bool:
    """Whether a value has all that is in another."""
    match whole, part:
        case dict(), dict():
            return all(name in whole and includes(whole[name], part[name]) for name in part)
        case list(), list():
            return len(whole) == len(part) and all(map(includes, whole, part))
        case _:
            return bool(whole == part)
