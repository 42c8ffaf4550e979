"""Private names of libraries are found. That none is used, `test_tidy.py` holds."""

from pathlib import PurePosixPath

import pytest

from tests.tidy.private_names import RULES
from tests.tidy.source import Source


def lines(text: str) -> set[int]:
    source = Source(PurePosixPath("functions/tollgate/cli/server/connections.py"), text)
    return {finding.line for rule in RULES for finding in rule(source)}


@pytest.mark.parametrize(
    "text",
    [
        "from uvicorn.protocols.http.h11_impl import H11Protocol",
        "from uvicorn.protocols import http",
        "import uvicorn.supervisors",
        "from prometheus_client.mmap_dict import MmapedDict",
        "from h11._connection import DEFAULT_MAX_INCOMPLETE_EVENT_SIZE",
        "from uvicorn import _types",
        "import asyncio; asyncio.events._get_running_loop()",
        "server._captured_signals",
        "getattr(server, '_captured_signals')",
        "import uvicorn\nclass S(uvicorn.Server): f = lambda self: self._captured_signals",
        "from uvicorn import Server\nclass S(Server):\n f = lambda self: self._captured_signals",
    ],
)
def test_a_private_name_of_a_library_is_found(text: str) -> None:
    assert lines(text) == {text.count("\n") + 1}


@pytest.mark.parametrize(
    "text",
    [
        "from uvicorn import Config, Server",
        "from tollgate.sign_in.grants import _approval",
        "address._replace(query='')",
        "from typing import Generic\nclass A(Generic):\n def f(self): self._a = 1; self._a",
        "from tollgate.web.shapes import B\nclass A(B): f = lambda self: self._b",
        "class A(B): f = lambda self: self._b",
        "import uvicorn\nclass S(uvicorn.Server):\n _a: int\n def f(self): return self._a",
        "hint.__metadata__",
    ],
)
def test_a_public_or_own_name_is_left_alone(text: str) -> None:
    assert lines(text) == set()
