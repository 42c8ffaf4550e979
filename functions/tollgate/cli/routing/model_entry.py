"""Insertion of a model into a routing file, without changes to other lines."""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Final

from msgspec import Struct
from pydantic_core import to_json

from tollgate.cli.routing.published_prices import Published
from tollgate.core.request import Capability, Modality
from tollgate.routing.file.document import YamlDocument, read_document, scalar
from tollgate.routing.price_sections import OverrideSection

_CENTS_EXPONENT: Final = -2
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._:/@()+-]*")
# Strings that YAML 1.1 reads as other values; `tollgate check` refuses them without quotes.
_AMBIGUOUS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_INDENT: Final = "  "


class Unplaceable(ValueError):
    """Raised for a file into which the model cannot be inserted; the message gives the reason."""


class ModelEntry(Struct, frozen=True, kw_only=True):
    """A new model with one endpoint at a published price."""

    slug: str
    name: str
    context: int
    max_output: int
    input: tuple[Modality, ...]
    supports: tuple[Capability, ...]
    provider: str
    upstream: str
    published: Published


def insert_model(path: Path, entry: ModelEntry) -> str:
    """Return the file's text with the model inserted after other models by its author."""
    document = read_document(path, path.as_posix())
    if document.problems:
        raise Unplaceable(f"{path.as_posix()} cannot be read; `tollgate check` shows why")
    if ("models", entry.slug) in document.keys:
        place = document.place_text(("models", entry.slug))
        raise Unplaceable(
            f"{entry.slug} exists already: {place}; add another provider by hand, as one "
            "of its endpoints"
        )
    with path.open(encoding="utf-8", newline="") as file:
        lines = file.read().splitlines(keepends=True)
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    after, indent = _position(document, entry.slug)
    if lines and after == len(lines) and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += newline
    block = ["", *(f"{indent}{line}" for line in render_entry(entry))]
    return "".join([*lines[:after], *(line + newline for line in block), *lines[after:]])


def _position(document: YamlDocument, slug: str) -> tuple[int, str]:
    """Return the number of lines before the new model, and the indentation of the models."""
    models = [where for where in document.keys if where[:1] == ("models",) and len(where) == 2]
    if not models or document.keys[models[0]].line == document.keys["models",].line:
        raise Unplaceable(f"{document.file} has no section `models` with one line for each model")
    author = slug.partition("/")[0]
    last = [where for where in models if str(where[1]).partition("/")[0] == author] or models
    heads = sorted(
        position.line
        for where, position in document.keys.items()
        if len(where) == 1 or where in models
    )
    following = [line for line in heads if line > document.keys[last[-1]].line]
    after = (following[0] if following else len(document.lines) + 1) - 1
    indent = " " * (document.keys[models[0]].column - 1)
    while _is_between(document.lines[after - 1], indent):
        after -= 1
    return after, indent


def _is_between(line: str, indent: str) -> bool:
    """Return whether a line belongs to the entry after it: an empty line, or a model's comment."""
    text = line.lstrip()
    return not text or (text.startswith("#") and len(line) - len(text) <= len(indent))


def render_entry(entry: ModelEntry) -> Iterator[str]:
    """Yield the YAML lines of a model, without the indentation of the section."""
    yield f"{entry.slug}:"
    yield f"{_INDENT}name: {yaml_text(entry.name)}"
    yield f"{_INDENT}context: {entry.context}"
    yield f"{_INDENT}max_output: {entry.max_output}"
    if entry.input != ("text",):
        yield f"{_INDENT}input: [{', '.join(entry.input)}]"
    if entry.supports:
        yield f"{_INDENT}supports: [{', '.join(entry.supports)}]"
    yield f"{_INDENT}endpoints:"
    yield f"{_INDENT * 2}- provider: {entry.provider}"
    yield from (f"{_INDENT * 3}{line}" for line in _offer(entry.upstream, entry.published))


def _offer(upstream: str, published: Published) -> Iterator[str]:
    yield f"upstream: {yaml_text(upstream)}"
    yield "price:"
    for name, value in published.price:
        if isinstance(value, Decimal):
            yield f"{_INDENT}{name}: {yaml_dollars(value)}"
    yield f"{_INDENT}source: {yaml_text(published.price.source)}"
    yield f"{_INDENT}checked: {published.price.checked}"
    if published.overrides:
        yield "overrides:"
    yield from (f"{_INDENT}{line}" for line in render_overrides(published.overrides))


def render_overrides(overrides: Iterable[OverrideSection]) -> Iterator[str]:
    """Yield two YAML lines for each override, without indentation."""
    for override in overrides:
        when = override.when.model_dump(by_alias=True, exclude_none=True)
        rates = override.price.model_dump(exclude_none=True, mode="python")
        conditions = ", ".join(f"{name}: {_condition(value)}" for name, value in when.items())
        amounts = ", ".join(
            f"{name}: {yaml_dollars(Decimal(rate))}" for name, rate in rates.items()
        )
        yield f"- when: {{ {conditions} }}"
        yield f"  price: {{ {amounts} }}"


def _condition(value: object) -> str:
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value)


def yaml_dollars(amount: Decimal) -> str:
    """Return an amount in dollars with two decimals, or with more if needed."""
    exact = amount.normalize()
    exponent = exact.as_tuple().exponent
    if isinstance(exponent, int) and exponent > _CENTS_EXPONENT:
        exact = exact.quantize(Decimal(1).scaleb(_CENTS_EXPONENT))
    return f"{exact:f}"


def yaml_text(value: str) -> str:
    """Return a string as a YAML scalar, with quotes only if YAML needs them."""
    plain = (
        _PLAIN.fullmatch(value)
        and ": " not in value
        and not value.endswith((":", " "))
        and value.lower() not in _AMBIGUOUS
        and isinstance(scalar(value), str)
    )
    return value if plain else to_json(value).decode()
