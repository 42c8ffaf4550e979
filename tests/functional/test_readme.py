"""Every command of the README does what the README says."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic
from openai import OpenAI

from tests.local_server import ROOT, LocalServer, environment, local_server

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def block(language: str, word: str) -> str:
    """The one block of a language that has a word in it."""
    (found,) = [text for name, text in BLOCKS if name == language and word in text]
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    assert "\nmake run " in block("sh", "git clone")
    with local_server(tmp_path_factory.mktemp("readme"), by_make=True) as started:
        yield started


@pytest.fixture(scope="module")
def printed(server: LocalServer) -> str:
    """What the README's Python prints, with its client built as the diff says."""
    diff = block("diff", "OpenAI(")
    lines = [line[1:] for line in diff.splitlines() if line.startswith(("+", " "))]
    client = "\n".join(lines).replace("http://localhost:8787/api/v1", server.base_url)
    source = client.replace("sk-tg-...", server.key) + "\n" + block("python", "stream = client")
    return run([sys.executable, "-c", source])


def run(command: list[str], **variables: str) -> str:
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_python_of_the_readme_streams_and_tells_the_cost(printed: str) -> None:
    text, told = printed.splitlines()
    assert text == "Hello from Tollgate"
    assert re.fullmatch(r"gen-\S{15} cost \$\d\S*", told)


def test_c7_the_base_url_of_each_format_serves_its_sdk(server: LocalServer) -> None:
    rows = re.findall(r"^\| (\w+)[^|]*\|[^|]*\| `(http\S+)` \|$", README, re.MULTILINE)
    here = server.base_url.removesuffix("/api/v1")
    urls = {name: url.replace("http://localhost:8787", here) for name, url in rows}
    said = "Hello from Tollgate"
    asked: Any = {"model": "test/echo", "messages": [{"role": "user", "content": said}]}
    with OpenAI(base_url=urls.pop("Chat"), api_key=server.key) as client:
        assert client.chat.completions.create(**asked).choices[0].message.content == said
        completed = client.completions.create(model="test/echo", prompt=said, max_tokens=9)
        assert completed.choices[0].text == said
    with OpenAI(base_url=urls.pop("Responses"), api_key=server.key) as client:
        assert client.responses.create(model="test/echo", input=said).output_text == said
    with Anthropic(base_url=urls.pop("Messages"), api_key=server.key) as client:
        (block_,) = client.messages.create(**asked, max_tokens=9).content
        assert block_.type == "text"
        assert block_.text == said
    assert urls == {}


def test_the_curl_of_the_readme_shows_why_it_cost_that(server: LocalServer, printed: str) -> None:
    id_, cost = re.findall(r"(gen-\S+) cost \$(\S+)", printed)[0]
    variables = {"BASE_URL": server.base_url, "ID": id_, "KEY": server.key}
    record = json.loads(run(["sh", "-c", block("sh", "curl")], **variables))["data"]
    assert record["id"] == id_
    assert record["total_cost"] == float(cost)
    assert record["cost_lines"]


def test_the_check_of_the_readme_finds_the_shipped_file_fine() -> None:
    command = f"PATH={Path(sys.executable).parent}:$PATH; " + block("sh", "tollgate check")
    # A checkout need not have a remote.
    command = command.replace("origin/main", "HEAD")
    printed = run(["sh", "-c", f"set -e; {command}"])
    assert printed.startswith("smart  catalog ")


def test_the_test_command_of_the_readme_is_what_ci_runs() -> None:
    assert block("sh", "make test").startswith("make test ")
    assert re.search(r"^(exec )?make .*test$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
