"""Every dotted name leads to an object, and every row of a table to one of its type."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import get_type_hints

import click
import pytest
from fastapi import APIRouter
from pydantic import BaseModel

from tests.cells import cells
from tests.tidy.source import Source
from tests.unit.web.served_api import every_service
from tollgate.cli.main import main
from tollgate.core.clock import SystemClock
from tollgate.core.dotted_names import DottedName, import_object
from tollgate.core.ids import IdSource
from tollgate.ingress.base import Ingress
from tollgate.ingress.format_rows import IngressFormat
from tollgate.ingress.formats import FORMATS
from tollgate.providers.ports.base import (
    BatchCodec,
    Codec,
    StreamedWorkCodec,
    TokenCounter,
    Transport,
)
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.web.topics import TOPICS, Topic
from tollgate.wiring.providers import TRANSPORTS

TOP = Path(__file__).parents[2]


def every_name() -> Iterator[str]:
    for path in sorted((TOP / "functions").rglob("*.py")):
        source = Source(PurePosixPath(path.relative_to(TOP)), path.read_text("utf-8"))
        yield from (name for name, _ in source.dotted_names)


NAMES = sorted(set(every_name()))


@cells("name", NAMES)
def test_a_name_leads_to_an_object_of_its_own_module(name: str) -> None:
    found = import_object(name)
    module = getattr(found, "__module__", None)
    # Values do not say where they are from, functions and classes do.
    if isinstance(found, type) or callable(found):
        assert module is None or module.startswith(name.partition(":")[0].rpartition(".")[0])


def test_a_name_that_leads_nowhere_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'NOTHING'"):
        import_object("tollgate.core.money.amounts:NOTHING")
    with pytest.raises(ModuleNotFoundError):
        import_object("tollgate.core.nothing:USD")


def test_a_name_imports_nothing_before_it_is_called() -> None:
    assert DottedName[object]("tollgate.core.nothing:X").name == "tollgate.core.nothing:X"


@pytest.mark.parametrize("name", WIRE_FORMATS)
def test_a_wire_format_names_its_codecs(name: str) -> None:
    row = WIRE_FORMATS[name]
    assert isinstance(row.make_codec(), Codec if row.codec else type(None))
    assert all(isinstance(each(), BatchCodec) for each in row.batch_codecs.values())
    assert all(isinstance(each(), StreamedWorkCodec) for each in row.stream_codecs.values())
    assert row.counter is None or isinstance(row.counter(), TokenCounter)


@pytest.mark.parametrize("name", TRANSPORTS)
def test_a_transport_is_made_by_what_its_row_names(name: str) -> None:
    assert get_type_hints(TRANSPORTS[name]())["return"] is Transport


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_a_client_format_names_its_class_and_models(row: IngressFormat) -> None:
    made = row.make()(IdSource(SystemClock()))
    own = [name for name in vars(Ingress) if not name.startswith("_")]
    assert [name for name in own if not hasattr(made, name)] == []
    models = row.models
    for field in models.__struct_fields__:
        named = getattr(models, field)
        if named is not None and field != "media_types":
            assert issubclass(named(), BaseModel), field
    if models.media_types is not None:
        assert all("/" in type_ for type_ in models.media_types().values())
    if row.counting is not None:
        assert callable(row.counting.parse())


@cells("topic", TOPICS, ids=lambda topic: "-".join(sorted(topic.steps)))
def test_a_topic_names_its_routers(topic: Topic) -> None:
    limit = {"body_bytes_max": 1_000} if topic.has_large_bodies else {}
    for router in topic.routers:
        assert isinstance(router()(every_service(), **limit), APIRouter)


def test_a_command_is_named_by_its_entry() -> None:
    assert isinstance(main, click.Group)
    context = click.Context(main)
    for name in main.list_commands(context):
        assert isinstance(main.get_command(context, name), click.Command)
