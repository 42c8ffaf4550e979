"""The line that `tollgate dev` prints of a generation."""

import pytest

from tests.unit.ingress.samples import record
from tollgate.cli.server.dev_journal import TerminalJournal
from tollgate.core.usage import Usage


@pytest.mark.parametrize(
    ("usage", "shown"),
    [
        (Usage(uncached_input_tokens=3, output_tokens=2), "3+2 tokens"),
        (Usage(uncached_input_tokens=0, output_tokens=0, characters=27), "27 characters"),
        (Usage(output_tokens=2, images=1), "0+2 tokens, 1 images"),
        (Usage(), "0+0 tokens"),
    ],
)
def test_a_line_has_the_units_that_are_charged_for(
    capsys: pytest.CaptureFixture[str], usage: Usage, shown: str
) -> None:
    TerminalJournal().settled(record(usage=usage))
    assert f"  {shown}  " in capsys.readouterr().out
