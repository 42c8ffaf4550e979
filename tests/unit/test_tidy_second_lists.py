"""Formats and parameters are each listed in one place: no other module lists them."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import get_args

import pytest

from tests.tidy.second_lists import second_lists
from tests.tidy.source import Source, sources_of
from tollgate.core.request import Sampling
from tollgate.ingress.chat_completions.wire.request import ChatFields
from tollgate.providers.ports.formats import FormatName
from tollgate.providers.ports.parameters import PARAMETERS

FORMATS_HOME = "functions/tollgate/providers/ports/formats.py"
PARAMETERS_HOME = "functions/tollgate/providers/ports/parameters.py"


def sources(*homes: str) -> Iterator[Source]:
    """Return every module of the product but the homes."""
    return (it for it in sources_of("functions") if it.path.as_posix() not in homes)


def test_formats_are_listed_in_one_table_only() -> None:
    names = get_args(FormatName)
    found = [
        str(finding)
        for source in sources(FORMATS_HOME)
        for finding in second_lists(source, names, at_least=2, home=FORMATS_HOME)
    ]
    assert found == []


def test_parameters_are_listed_in_one_place_only() -> None:
    """The table of formats may say which of them a format takes; a codec's body has other words."""
    found = [
        str(finding)
        for source in sources(FORMATS_HOME, PARAMETERS_HOME)
        for finding in second_lists(source, PARAMETERS, at_least=3, home=PARAMETERS_HOME)
    ]
    assert found == []


def test_a_sampling_parameter_is_a_field_of_the_client_format_by_the_same_name() -> None:
    assert set(Sampling.__struct_fields__) <= ChatFields.model_fields.keys()
    assert set(Sampling.__struct_fields__) <= set(PARAMETERS)


@pytest.mark.parametrize(
    "text",
    [
        'a = {"x", "y"}',
        'a = ["x", "y", "y"]',
        'a = ("x", "y")',
        'A = Literal["x", "y"]',
        'a = {"x": 1, "y": 2}',
        'match a:\n    case "x" | "y": pass',
    ],
)
def test_a_second_list_is_found_in_whatever_form(text: str) -> None:
    source = Source(PurePosixPath("functions/tollgate/a.py"), text)
    assert [*second_lists(source, ["x", "y", "z"], at_least=2, home="b")] != []
    assert [*second_lists(source, ["x", "y", "z"], at_least=3, home="b")] == []


@pytest.mark.parametrize("text", ['a = "x", "other"', 'a = {"x": 1, "y": 2, **b}', 'f("x", "y")'])
def test_a_list_of_other_words_is_none(text: str) -> None:
    source = Source(PurePosixPath("functions/tollgate/a.py"), text)
    assert [*second_lists(source, ["x", "y"], at_least=2, home="b")] == []
