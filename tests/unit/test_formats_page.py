"""docs/formats/ says what becomes of each thing that a client says, at each codec.

Keeps C13, C18, C80.
"""

import pytest

from tests import format_table
from tests.unit.engine.client_formats import CLIENT_FORMATS, ClientFormat


@pytest.mark.parametrize("client", CLIENT_FORMATS.values(), ids=lambda client: client.name)
def test_c13_c80_the_table_is_what_the_format_and_the_codecs_do(client: ClientFormat) -> None:
    page = format_table.path(client)
    written = page.read_text(encoding="utf-8")
    made = format_table.page(client, written)
    assert made == written, f"{page.name} is stale: run python -m tests.format_table"
