"""The places of the product's files and of its tools, in a checkout.

Keeps no contract statement.
"""

import pytest

from tests.local_server import ROOT
from tollgate.installation import PARTS, PartName, environment, part


@pytest.mark.parametrize("name", PARTS)
def test_each_part_is_in_the_checkout(name: PartName) -> None:
    assert part(name) == ROOT / PARTS[name]
    assert part(name).exists()


@pytest.mark.parametrize("name", ["ministack", "sam"])
def test_the_tools_of_a_checkout_are_those_that_make_installs(name: str) -> None:
    if not (ROOT / ".tools" / name / "stamp").exists():
        pytest.skip(f"{name} is not installed: run `make .tools/{name}/stamp`")
    assert environment(name) == ROOT / ".tools" / name
    assert (environment(name) / "bin" / name).exists()
