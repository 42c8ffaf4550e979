"""The parts that messages and answers are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

# What a provider wants echoed untouched (signatures), under the provider's own name.
Opaque = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Text that a model thought before it answered."""

    text: str
    opaque: Opaque = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The words with which a model declined."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that a model asks for; `arguments` is JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str
    opaque: Opaque = field(default_factory=dict)


Part = Text | Reasoning | Refusal | ToolCall
