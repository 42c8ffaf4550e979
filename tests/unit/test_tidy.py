"""Style is a test: sizes, layers, the one reader of the environment, and names."""

from pathlib import PurePosixPath

import pytest

from tests.tidy import imports, layers, private_names, shape, words
from tests.tidy.names import names_have_one_meaning
from tests.tidy.source import Finding, Rule, Source, sources_of

CHECKED = ("functions", "infra", "bench", "tests")
RULES = {
    rule.__name__: rule
    for rule in (
        *imports.RULES,
        *layers.RULES,
        *private_names.RULES,
        *shape.RULES,
        *words.RULES,
    )
}


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    return [source for folder in CHECKED for source in sources_of(folder)]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_project_keeps(rule: Rule, sources: list[Source]) -> None:
    broken = [str(finding) for source in sources for finding in rule(source)]
    assert not broken, "\n" + "\n".join(broken)


def test_a_public_name_has_one_meaning(sources: list[Source]) -> None:
    broken = [str(finding) for finding in names_have_one_meaning(sources)]
    assert not broken, "\n" + "\n".join(broken)


# The rule, a file (in functions/ unless it says tests/), its text, the lines that are found.
BROKEN = [
    ("imports_run_one_way", "tollgate/core/events.py", "import tollgate.aws.sigv4", [1]),
    ("imports_run_one_way", "tollgate/core/events.py", "from tollgate import aws", [1]),
    ("imports_run_one_way", "tollgate/core/events.py", "from ..aws import sigv4", [1]),
    ("imports_run_one_way", "tollgate/core/__init__.py", "from ..aws import sigv4", [1]),
    ("imports_run_one_way", "tollgate/__init__.py", "from tollgate.wiring import build", [1]),
    (
        "imports_run_one_way",
        "tollgate/aws/sigv4.py",
        "from tollgate.routing.price import Price",
        [1],
    ),
    ("imports_run_one_way", "tollgate/aws/sigv4.py", "\ndef f():\n    import tollgate.engine", [3]),
    (
        "imports_run_one_way",
        "tollgate/stores/rules/sweep.py",
        "from tollgate.stores.money.ledger import X",
        [1],
    ),
    (
        "imports_run_one_way",
        "tollgate/routing/planning/plan.py",
        "from tollgate.routing.file.load import X",
        [1],
    ),
    (
        "imports_run_one_way",
        "tollgate/routing/planning/plan.py",
        "from tollgate.engine.meter import X",
        [1],
    ),
    (
        "imports_run_one_way",
        "tollgate/stores/keys/lookup.py",
        "from tollgate.engine.meter import X",
        [1],
    ),
    ("imports_run_one_way", "tollgate/engine/meter.py", "import tollgate.observability.log", [1]),
    ("imports_run_one_way", "tollgate/engine/meter.py", "from tollgate.settings import X", [1]),
    ("imports_run_one_way", "tollgate/settings.py", "from tollgate.web.access import X", [1]),
    ("imports_run_one_way", "tollgate/web/access.py", "from tollgate.wiring import X", [1]),
    ("imports_run_one_way", "tollgate/wiring.py", "from tollgate.cli.main import X", [1]),
    ("imports_run_one_way", "tollgate/wiring.py", "import chat", [1]),
    ("imports_run_one_way", "tollgate/somewhere/else.py", "", [1]),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/engine/attempts.py",
        "from tollgate.providers.codecs.bedrock.decode import X\nfrom tollgate.stores import money",
        [1, 2],
    ),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/providers/codecs/bedrock/decode.py",
        "from tollgate.providers.codecs.openai_chat.decode import X",
        [1],
    ),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/cli/dev.py",
        "import tollgate.providers.transports.sse\nfrom tollgate.stores.keys.lookup import X",
        [1, 2],
    ),
    (
        "implementations_are_imported_by_wiring_alone",
        "chat.py",
        "from tollgate.providers.transports.http_sse import X",
        [1],
    ),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/providers/ports/formats.py",
        "import tollgate.providers.codecs.bedrock.decode",
        [1],
    ),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/providers/ports/formats.py",
        "def load():\n from tollgate.providers.codecs.bedrock.decode import X",
        [2],
    ),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/engine/attempts.py",
        'X = DottedName("tollgate.providers.codecs.bedrock.decode:X")',
        [1],
    ),
    (
        "imports_run_one_way",
        "tollgate/engine/attempts.py",
        'A = 1\nX = DottedName[Codec]("tollgate.web.access:X")',
        [2],
    ),
    (
        "deferred_imports_have_a_reason",
        "tollgate/core/money/amounts.py",
        "def f():\n    import json\n\n    return json",
        [2],
    ),
    (
        "formats_and_providers_never_meet",
        "tollgate/ingress/messages/parse.py",
        "from tollgate.providers.ports.base import Codec",
        [1],
    ),
    (
        "formats_and_providers_never_meet",
        "tollgate/providers/codecs/anthropic/encode.py",
        "from tollgate.ingress.base import Ingress",
        [1],
    ),
    ("packages_stay_in_their_home", "tollgate/engine/generate.py", "import fastapi", [1]),
    ("packages_stay_in_their_home", "tollgate/web/access.py", "from aiohttp import web", [1]),
    ("packages_stay_in_their_home", "tollgate/stores/webhooks/x.py", "import aiohttp", [1]),
    ("packages_stay_in_their_home", "tollgate/http1/pool.py", "import aiohttp.web", [1]),
    ("packages_stay_in_their_home", "tollgate/stores/keys/lookup.py", "import boto3", [1]),
    ("packages_stay_in_their_home", "chat.py", "from mangum import Mangum", [1]),
    ("packages_stay_in_their_home", "tollgate/web/access.py", "import pydantic_settings", [1]),
    ("settings_alone_reads_the_environment", "chat.py", "import os\nos.environ['A']", [2]),
    ("settings_alone_reads_the_environment", "tollgate/wiring.py", "import os as o\no.getenv", [2]),
    (
        "settings_alone_reads_the_environment",
        "tollgate/cli/dev.py",
        "from os import environ as e\ndict(e)",
        [2],
    ),
    ("time_and_chance_come_from_core", "tollgate/engine/meter.py", "import time\ntime.time()", [2]),
    (
        "time_and_chance_come_from_core",
        "tollgate/engine/meter.py",
        "from time import time\ntime()",
        [2],
    ),
    (
        "time_and_chance_come_from_core",
        "tollgate/engine/meter.py",
        "from random import choice",
        [1],
    ),
    (
        "time_and_chance_come_from_core",
        "tollgate/core/money/amounts.py",
        "import datetime as dt\n\ndt.datetime.now(dt.UTC)",
        [3],
    ),
    (
        "time_and_chance_come_from_core",
        "tollgate/lambda_runtime/loop.py",
        "from datetime import datetime\nfrom asyncio import sleep\ndatetime.now()\nsleep(1)",
        [3, 4],
    ),
    ("files_are_short", "tollgate/core/money/amounts.py", "\n" * 401, [401]),
    ("files_are_short", "tests/unit/test_money.py", "\n" * 401, [401]),
    ("functions_are_short", "tollgate/core/money/amounts.py", "def f():" + "\n    1" * 70, [1]),
    (
        "functions_are_short",
        "tollgate/core/money/amounts.py",
        "async def f():" + "\n    1" * 70,
        [1],
    ),
    ("parameters_past_the_fourth_are_named", "tollgate/x.py", "def f(a, b, /, c, d, e): 1", [1]),
    (
        "parameters_past_the_fourth_are_named",
        "tollgate/x.py",
        "class A:\n def f(self, a, b, c, d, e): 1\n @staticmethod\n def g(a, b, c, d, e): 1",
        [2, 4],
    ),
    ("names_say_something", "tollgate/core/utils.py", "", [1]),
    ("names_say_something", "tollgate/data/__init__.py", "", [1]),
    ("names_say_something", "tollgate/core/money_helpers.py", "", [1]),
    ("names_say_something", "tollgate/core/money/amounts.py", "class KeyManager: 1", [1]),
    ("names_say_something", "tollgate/core/money/amounts.py", "class HTTPInfo: 1", [1]),
    (
        "names_say_something",
        "tollgate/core/money/amounts.py",
        "def data(): 1\ndef _info(): 1",
        [1, 2],
    ),
    ("values_have_types", "tollgate/core/money/amounts.py", "a: dict[str, Any]", [1]),
    (
        "values_have_types",
        "tollgate/stores/rules/x.py",
        "def f() -> list[dict[str, t.Any]]: 1",
        [1],
    ),
    ("lookups_are_not_chained", "tollgate/web/access.py", "a.get('b', {}).get('c')", [1]),
    ("comments_promise_nothing", "tollgate/core/money/amounts.py", "a = 1  # TODO: b", [1]),
    ("docstrings_begin_plainly", "tollgate/core/money/amounts.py", '"""What money is."""', [1]),
    (
        "docstrings_begin_plainly",
        "tollgate/core/money/amounts.py",
        'def f():\n    """The amount."""\nclass A:\n    """Whoever pays."""',
        [1, 3],
    ),
    ("words_are_plain", "tollgate/core/money/amounts.py", "a = 1\n# whoever pays", [2]),
    (
        "descriptions_of_fields_begin_plainly",
        "tollgate/core/money/amounts.py",
        'class A:\n    b: bool\n    """Whether it is."""',
        [3],
    ),
    ("words_are_plain", "tollgate/core/money/amounts.py", '"""A.\n\nIt makes no sense."""', [3]),
    ("comments_promise_nothing", "tollgate/core/money/amounts.py", "\n# FIXME", [2]),
    (
        "libraries_are_used_by_public_names",
        "tollgate/cli/server/server.py",
        "from uvicorn.protocols.http.h11_impl import H11Protocol\nfrom uvicorn import _types",
        [1, 2],
    ),
    (
        "private_attributes_are_of_their_own_object",
        "tollgate/cli/server/server.py",
        "server._tasks\nimport uvicorn\nclass A(uvicorn.Server): b = lambda self: self._tasks",
        [1, 3],
    ),
]
KEPT = [
    (
        "descriptions_of_fields_begin_plainly",
        "tollgate/core/money/amounts.py",
        'class A:\n    b: bool\n    """True if it is."""',
    ),
    (
        "docstrings_begin_plainly",
        "tollgate/core/money/amounts.py",
        'def f():\n    """Return it."""',
    ),
    ("docstrings_begin_plainly", "tollgate/core/money/amounts.py", '"""Amounts of money."""'),
    (
        "docstrings_begin_plainly",
        "tollgate/core/money/amounts.py",
        'class A:\n    """An amount."""\n    @property\n    def b(self):\n        """The rest."""',
    ),
    ("docstrings_begin_plainly", "tests/unit/test_x.py", 'def f():\n    """What it is."""'),
    (
        "words_are_plain",
        "tollgate/core/money/amounts.py",
        "# The caller, whose item is corrupt.\nasked = 1",
    ),
    (
        "imports_run_one_way",
        "tollgate/engine/meter.py",
        "import tollgate.routing.price\nimport json",
    ),
    (
        "imports_run_one_way",
        "tollgate/engine/meter.py",
        'X = DottedName("tollgate.engine.withheld:X"), DottedName("google.auth:Y")',
    ),
    (
        "deferred_imports_have_a_reason",
        "tollgate/core/money/amounts.py",
        "import json\ndef f():\n    # Few need these.\n    import csv\n    import zlib",
    ),
    (
        "imports_run_one_way",
        "tollgate/routing/planning/plan.py",
        "from tollgate.providers.ports.base import Target",
    ),
    ("imports_run_one_way", "tollgate/core/usage.py", "from .money import Nano"),
    ("imports_run_one_way", "chat.py", "from tollgate.wiring import build"),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/wiring.py",
        "import tollgate.stores.keys.lookup\nimport tollgate.providers.transports.sse",
    ),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/providers/codecs/bedrock/decode.py",
        "from .encode import X\nfrom ...ports.base import Y\nimport tollgate.providers.ports.base",
    ),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/providers/ports/formats.py",
        'X = DottedName[Codec]("tollgate.providers.codecs.bedrock.decode:X")',
    ),
    (
        "implementations_are_imported_by_wiring_alone",
        "tollgate/stores/keys/lookup.py",
        "from tollgate.aws.aws_json import X\nfrom tollgate.stores.ports.base import Y",
    ),
    ("packages_stay_in_their_home", "tollgate/http1/egress.py", "from yarl import URL"),
    ("packages_stay_in_their_home", "tollgate/web/api_app.py", "from fastapi import FastAPI"),
    ("packages_stay_in_their_home", "tests/unit/test_x.py", "import boto3"),
    (
        "implementations_are_imported_by_wiring_alone",
        "tests/unit/test_x.py",
        "from tollgate.stores.keys.lookup import X",
    ),
    ("settings_alone_reads_the_environment", "tollgate/settings.py", "import os\nos.environ"),
    ("settings_alone_reads_the_environment", "tollgate/web/x.py", "import os\nos.path.join('a')"),
    (
        "time_and_chance_come_from_core",
        "tollgate/core/clock.py",
        "import time, asyncio\nasyncio.sleep",
    ),
    ("time_and_chance_come_from_core", "tollgate/web/x.py", "from datetime import datetime, UTC"),
    ("time_and_chance_come_from_core", "tollgate/aws/sigv4.py", "import time\ntime.gmtime(0)"),
    ("files_are_short", "tollgate/core/money/amounts.py", "\n" * 400),
    ("functions_are_short", "tollgate/core/money/amounts.py", "def f():" + "\n    1" * 69),
    (
        "parameters_past_the_fourth_are_named",
        "tollgate/x.py",
        "class A:\n def f(self, a, b, c, d, *, e): 1\n @classmethod\n def g(cls, a, b, c, d): 1",
    ),
    ("names_say_something", "tollgate/core/metadata.py", "class Database: 1\ndef data_line(): 1"),
    ("values_have_types", "tollgate/aws/sigv4.py", "a: dict[str, Any]"),
    ("values_have_types", "tollgate/core/money/amounts.py", "a: dict[str, int]"),
    ("lookups_are_not_chained", "tollgate/web/access.py", "a.get('b', c).get('d')"),
    ("comments_promise_nothing", "tollgate/core/money/amounts.py", "a = 'TODO'"),
]


def findings(rule: str, path: str, text: str) -> list[Finding]:
    top = "" if path.startswith("tests/") else "functions"
    return list(RULES[rule](Source(PurePosixPath(top, path), text)))


@pytest.mark.parametrize(("rule", "path", "text", "lines"), BROKEN)
def test_a_broken_rule_is_found(rule: str, path: str, text: str, lines: list[int]) -> None:
    assert [finding.line for finding in findings(rule, path, text)] == lines


@pytest.mark.parametrize(("rule", "path", "text"), KEPT)
def test_what_keeps_the_rule_is_left_alone(rule: str, path: str, text: str) -> None:
    assert findings(rule, path, text) == []


def test_every_rule_is_seen_broken() -> None:
    assert {rule for rule, *_ in BROKEN} == set(RULES)


def test_a_finding_says_where_and_which_rule() -> None:
    [finding] = findings("packages_stay_in_their_home", "chat.py", "import boto3")
    assert str(finding) == "functions/chat.py:1: boto3 is imported only in cli"
