"""Whatever a caller asks for goes out, is refused, or is named as left out: for every codec.

Each option is sent alone and the body compared with that of the same request without it.

Keeps C11, C13, C15, C17.
"""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from tests.unit.providers.request_options import (
    OPTIONS,
    PLAIN,
    TEXT_OPTIONS,
    Option,
    as_one_text,
)
from tests.upstream.wires import EVERY_WIRE, Wire
from tollgate.core.errors import RequestError
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import Dialect

# What is left out by design, because nothing that a caller may see depends on it: names of files
# reach models as text on some formats, and there a neutral one is sent.
NEUTRAL = frozenset({"file.filename"})


def plainest(wire: Wire) -> Target:
    """The endpoint of a row that states nothing, with a model that can do no more than tools."""
    dialect = Dialect(claude_carrier=wire.dialect.claude_carrier)
    return replace(wire.target, dialect=dialect, supports=frozenset({"tools"}))


TARGETS: Mapping[str, tuple[Wire, Target]] = {
    **{wire.name: (wire, wire.target) for wire in EVERY_WIRE},
    **{f"{wire.name}-plainest": (wire, plainest(wire)) for wire in EVERY_WIRE},
}
CASES = [
    pytest.param(name, option, id=f"{name}-{option.name}")
    for name, (wire, _) in TARGETS.items()
    for option in (TEXT_OPTIONS if wire.text_only else OPTIONS)
]


@pytest.mark.parametrize(("name", "option"), CASES)
def test_c13_an_option_goes_out_or_is_named_or_refused(name: str, option: Option) -> None:
    wire, target = TARGETS[name]
    without = wire.codec.encode(option.without, target)
    try:
        sent: WireRequest = wire.codec.encode(option.request, target)
    except RequestError:
        return
    is_named = option.name in sent.adapted
    assert sent.body != without.body or is_named or option.name in NEUTRAL
    assert option.name not in without.adapted


@pytest.mark.parametrize("name", TARGETS)
def test_c13_nothing_is_named_where_nothing_was_asked(name: str) -> None:
    wire, target = TARGETS[name]
    plain = as_one_text(PLAIN) if wire.text_only else PLAIN
    assert wire.codec.encode(plain, target).adapted == ()
