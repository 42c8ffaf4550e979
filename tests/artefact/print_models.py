"""A program that prints what models read: run with pydantic, and in a function without it.

It reads the settings from its environment, the catalog beside it, and requests of all formats.
"""

import copy
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, sys.argv[1])

from pydantic_core import ValidationError

from tollgate.core.clock import SystemClock
from tollgate.core.errors import RequestError
from tollgate.core.ids import IdSource
from tollgate.ingress.formats import FORMATS, Ingresses
from tollgate.providers.dialect import Dialect
from tollgate.providers.gemini.wire import Candidate
from tollgate.routing.chains import RuleSection
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.scalars import merge_section
from tollgate.settings import Settings

HI = {"role": "user", "content": "hi"}
PICTURE = {"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
SCHEMA = {"name": "s", "schema": {"type": "object"}, "strict": True}
# Sent in every format with its own field of content, and alone.
FIELDS: tuple[dict[str, Any], ...] = (
    {},
    {"temperature": 0.5, "top_p": 1, "stop": ["a"], "seed": 7, "unknown": {"a": 1}},
    {"temperature": "warm"},
    {"temperature": 3, "n": 0},
    {"n": 2, "stream": True, "stream_options": {"include_usage": True}},
    {"provider": {"order": ["a"], "max_price": {"prompt": "0.5", "x": 1}, "y": 2}},
    {"provider": {"max_price": {"prompt": "1e99"}}},
    {"metadata": {"k" * 65: "v"}},
    {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
    {"tools": [{"type": "smell"}]},
    {"tools": [{"name": "f", "input_schema": {"type": "object"}}], "max_tokens": 9},
    {"tools": [{"type": "function", "name": "f", "parameters": {}}], "tool_choice": {"type": 7}},
    {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
    {"reasoning": {"effort": "low", "max_tokens": 7}},
    {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000},
    {"guided_json": {"type": "object"}, "episode_id": "no"},
    {"plugins": [{"id": "web"}], "max_tokens": 5},
    {"messages": []},
    {"messages": [{"role": "nobody", "content": 7}]},
    {"messages": [{"role": "user", "content": [PICTURE, {"type": "text", "text": "a"}]}]},
    {"messages": [HI, {"role": "assistant", "content": "a", "reasoning": "b", "tool_calls": []}]},
    {"input": [{"role": "user", "content": [{"type": "output_text", "text": "a"}]}]},
    {"input": [{"type": "function_call_output", "call_id": "c", "output": "7"}]},
    {"input": [{"type": "message", "role": "user", "content": [{"type": "smell"}]}]},
    {"dimensions": 0, "size": "big", "documents": [], "voice": ""},
)
CONTENT = {
    "model": "a/b",
    "messages": [HI],
    "input": "hi",
    "query": "hi",
    "documents": ["a", "b"],
    "voice": "alloy",
    "max_tokens": 7,
}


def show(value: object) -> object:
    """Return a value as JSON, models with their fields and with what was stated."""
    if hasattr(value, "model_fields_set"):
        fields = {name: show(it) for name, it in sorted(vars(value).items())}
        stated, extra = sorted(value.model_fields_set), show(value.model_extra)
        return {"is": type(value).__name__, "fields": fields, "stated": stated, "extra": extra}
    if isinstance(value, dict):
        return {str(name): show(it) for name, it in value.items()}
    if isinstance(value, list | tuple):
        return [show(it) for it in value]
    return repr(value)


def digest(value: object) -> str:
    """Return a short name of what a value shows."""
    return hashlib.sha256(json.dumps(show(value)).encode()).hexdigest()[:16]


def print_settings() -> None:
    """Print the settings, or what is wrong with them."""
    try:
        print("settings", json.dumps(show(Settings(catalog_file="stated.json"))))
    except ValidationError as invalid:
        print("settings", invalid.title, json.dumps(invalid.errors(include_url=False)))


def print_requests() -> None:
    """Print each request as its format parses it, or the refusal."""
    ingresses = Ingresses(IdSource(SystemClock()))
    for row in FORMATS:
        for number, fields in enumerate(FIELDS):
            for content in ({}, CONTENT | {"prompt": None if row.name == "responses" else "hi"}):
                body = json.dumps({**content, **fields}).encode()
                try:
                    outcome = repr(ingresses[row.name].parse(body))
                except RequestError as refused:
                    outcome = f"{refused.param}: {refused}"
                print(row.name, number, bool(content), outcome)


def print_catalog(file: Path) -> None:
    """Print digests of the models of a catalog, and what its readers make of them."""
    catalog = Catalog.from_json(file.read_bytes())
    for slug, model in catalog.models.items():
        print(slug, digest(model), model.known_since, [it.schedule for it in model.endpoints][:1])
    sections = (catalog.defaults, catalog.billing, catalog.routes, catalog.key_tiers)
    print([digest(it) for it in sections], digest(catalog.pdf), digest(catalog.tools.section))
    print([digest(it.dialect) for it in catalog.providers.values()])


def print_methods() -> None:
    """Print what the methods of models return."""
    plain, stated = Dialect(), Dialect.model_validate({"stream_usage": False}, strict=True)
    merged = merge_section(plain, stated)
    print(merged == stated, plain == merged, hash(merged) == hash(stated), digest(merged))
    rule = RuleSection.model_construct(condition=None, steps=({"a": 100},))
    print(json.dumps(show(rule)))
    candidate = Candidate.model_validate_json(b'{"index": 0, "finishReason": 1, "x": 2}')
    print(json.dumps(show(copy.deepcopy(candidate))), candidate.model_dump(by_alias=True))
    print(Candidate.model_validate({}).content is not Candidate.model_validate({}).content)


print_settings()
print_requests()
print_catalog(Path(sys.argv[2]))
print_methods()
