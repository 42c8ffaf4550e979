"""The validators that the build prepares are those that pydantic makes."""

import pickle
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_core import CoreConfig, SchemaValidator

from infra.artefact.validators import strip_schema, write_validators
from tollgate.ingress.chat_completions.wire.request import ChatFields
from tollgate.routing.schema import CompiledRouting, ModelSection

Prepared = tuple[type[BaseModel], Any, CoreConfig]

MODELS = (CompiledRouting, ModelSection, ChatFields)
MESSAGE = {"role": "user", "content": "hi"}
BODIES: list[object] = [
    {"model": "a/b", "messages": [MESSAGE], "metadata": {"run": "7"}, "unknown": 1},
    {"model": "a/b", "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]},
    {"model": "a/b", "messages": [MESSAGE], "max_price": 1, "provider": {"sort": "price"}},
    {},
    [],
    {"model": 7, "messages": "hi"},
    {"model": "", "messages": []},
    {"model": "a/b", "messages": [{"role": "nobody", "content": "hi"}]},
    {"model": "a/b", "messages": [7]},
    {"model": "a/b", "messages": [{"role": "user", "content": [{"type": "smell"}]}]},
    {"model": "a/b", "messages": [{"role": "user", "content": {"a": 1}}]},
    {"model": "a/b", "messages": [MESSAGE], "temperature": 3, "n": 0, "stop": ["a"] * 5},
    {"model": "a/b", "messages": [MESSAGE], "metadata": {"k" * 65: "v"}, "stream": "true"},
    {"model": "a/b", "messages": [MESSAGE], "tools": [{"type": "function", "function": {}}]},
    {"model": "a/b", "messages": [MESSAGE], "provider": {"max_price": {"prompt": "1e99"}}},
]


@pytest.fixture(scope="module", name="prepared")
def fixture_prepared() -> list[Prepared]:
    """What a function reads at its start."""
    made: list[Prepared] = pickle.loads(write_validators(MODELS))
    return made


def test_a_prepared_schema_is_the_models_own(prepared: list[Prepared]) -> None:
    assert [model for model, _, _ in prepared] == list(MODELS)
    for model, schema, config in prepared:
        # Functions are of one process here, so that `repr` shows whether they are the same.
        assert repr(schema) == repr(strip_schema(model.__pydantic_core_schema__, {}))
        assert config["title"] == model.__name__


def test_fields_called_like_keys_of_a_schema_stay() -> None:
    field = {"type": "model-field", "schema": {"type": "str"}, "metadata": {}}
    schema = {"type": "model-fields", "fields": {"metadata": field}, "metadata": {"a": 1}}
    kept = {"type": "model-field", "schema": {"type": "str"}}
    assert strip_schema(schema, {}) == {"type": "model-fields", "fields": {"metadata": kept}}


@pytest.mark.parametrize("body", BODIES)
def test_a_prepared_validator_refuses_as_pydantic_does(
    prepared: list[Prepared], body: object
) -> None:
    validator = next(SchemaValidator(*it) for model, *it in prepared if model is ChatFields)
    assert _outcome(validator.validate_python, body) == _outcome(ChatFields.model_validate, body)


def _outcome(validate: Any, body: object) -> object:
    try:
        return validate(body)
    except ValidationError as error:
        return error.title, error.errors(include_url=False)
