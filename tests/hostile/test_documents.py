"""Documents that state or unpack to absurd amounts, and documents that take over their reader.

Keeps C72.
"""

import asyncio
import os
import pwd
import random
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests import documents
from tollgate.core.documents.reading import (
    CPU_SECONDS_MAX,
    DocumentFault,
    ReadFault,
    ReadingRequest,
    ReadingShare,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.core.files.media_types import DOCX, HTML, PDF, XLSX
from tollgate.engine.documents.reading_budget import ReadingBudget
from tollgate.reading.child_reader import ChildReader
from tollgate.reading.read import perform

# Most CPU time for a bomb of a few kilobytes; before its limits, each took from 5 to 25 s.
BOMB_CPU_SECONDS_MAX: Final = 3.0
PARAGRAPH: Final = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"
MERGED: Final = f"<w:tc><w:tcPr><w:vMerge/></w:tcPr>{PARAGRAPH}</w:tc>"
COMPLEX, PARTS = DocumentFault.TOO_COMPLEX, DocumentFault.TOO_MANY_PARTS


def span(columns: int) -> str:
    """Return a row with one cell over so many columns."""
    spanned = f'<w:tcPr><w:gridSpan w:val="{columns}"/></w:tcPr>'
    return f"<w:tr><w:tc>{spanned}{PARAGRAPH}</w:tc></w:tr>"


def table(rows: str) -> bytes:
    return documents.word_of(f"<w:tbl>{rows}</w:tbl>")


BOMBS: Final[dict[str, tuple[bytes, str, DocumentFault | None]]] = {
    "a cell over a million columns": (table(span(1_000_000)), DOCX, PARTS),
    "a row of 10^30 columns": (table(span(10**30)), DOCX, PARTS),
    "many rows over all columns": (table(span(1_000) * 500), DOCX, PARTS),
    "10 MB of paragraphs": (documents.word_of(PARAGRAPH * 300_000), DOCX, COMPLEX),
    "10 MB of empty paragraphs": (documents.word_of("<w:p/>" * 1_700_000), DOCX, COMPLEX),
    "cells merged with those above": (table(f"<w:tr>{MERGED * 10}</w:tr>" * 1_000), DOCX, None),
    "tables in tables": (
        documents.word_of("<w:tbl><w:tr><w:tc>" * 5_000 + "</w:tc></w:tr></w:tbl>" * 5_000),
        DOCX,
        DocumentFault.MALFORMED,
    ),
    "row 2^31": (
        documents.workbook_of(f'<row r="{2**31}"><c r="A{2**31}"><v>1</v></c></row>'),
        XLSX,
        PARTS,
    ),
    "wide rows": (documents.workbook_of('<row><c r="ZZZ1"><v>1</v></c></row>' * 500), XLSX, PARTS),
    "10 MB of cells": (
        documents.workbook_of("<row>" + "<c/>" * 2_500_000 + "</row>"),
        XLSX,
        COMPLEX,
    ),
    "elements of a page": (b"<html><body>" + b"<b>x</b>" * 160_000, HTML, PARTS),
}


@pytest.mark.parametrize("name", BOMBS)
def test_an_absurd_document_is_refused_by_its_own_counts(name: str) -> None:
    content, type_, fault = BOMBS[name]
    request = ReadingRequest(media_type=type_, task=ReadingTask(), content=content, bytes_max=10**9)
    start_s = time.process_time()
    reply = perform(request)
    assert time.process_time() - start_s < BOMB_CPU_SECONDS_MAX
    assert (reply.fault if isinstance(reply, ReadFault) else None) == fault


def test_the_limits_are_above_what_people_write() -> None:
    # 150 pages of different words, and a sheet of 5,000 rows.
    chance = random.Random(27)
    paragraphs = "".join(
        f"<w:p><w:r><w:t>{chance.randbytes(200).hex()}</w:t></w:r></w:p>" for _ in range(3_000)
    )
    rows = [(number, f"row {number}", number * 0.5) for number in range(5_000)]
    for content, type_ in (
        (documents.word_of(paragraphs), DOCX),
        (documents.workbook(rows), XLSX),
    ):
        request = ReadingRequest(
            media_type=type_, task=ReadingTask(), content=content, bytes_max=10**9
        )
        assert not isinstance(perform(request), ReadFault)


# A document that has taken over its reader: it tries what a thief would try, and reports what
# succeeded as its text.
_TAKEN_OVER: Final = """
import ctypes, os, socket, sys
from tollgate.core.documents.reading import DocumentPage, ReadBatch
from tollgate.reading import child, limited

def connect():
    socket.create_connection(("127.0.0.1", PORT), timeout=2)

def tries():
    parent = os.getppid_at_start
    yield "variables", lambda: None if set(os.environ) - {"LC_CTYPE"} else 1 / 0
    yield "connect", connect
    yield "socket", lambda: socket.socket(socket.AF_UNIX)
    yield "environment of the gateway", lambda: open(f"/proc/{parent}/environ", "rb").read()
    yield "file", lambda: open("/etc/passwd").read()
    yield "file of the process", lambda: open("/proc/self/status").read()
    yield "new file", lambda: os.mkdir("FOLDER/taken-over")
    yield "signal", lambda: os.kill(parent, 0)
    yield "fork", lambda: os.fork() or os._exit(0)
    yield "io_uring", lambda: 1 / (ctypes.CDLL(None).syscall(425, 1, bytes(120)) + 1)
    if not LAYERS_OFF:
        yield "program", lambda: os.execv("/bin/true", ["true"])

def take_over(request):
    done = []
    for name, attempt in tries():
        try:
            attempt()
        except (OSError, ZeroDivisionError):
            continue
        done.append(name)
    return ReadBatch(pages=(DocumentPage(number=1, text=",".join(done)),), pages_total=1)

LAYERS_OFF = [OFF]
for layer in LAYERS_OFF:
    setattr(child, layer, lambda: False)
os.getppid_at_start = os.getppid()
limited.perform = take_over
child.main()
"""


# Resources that a document reaches, by the layers of confinement that are switched off.
REACHED: Final[dict[tuple[str, ...], set[str]]] = {
    (): set(),
    ("isolate",): set(),
    ("open_no_more",): set(),
    ("confine",): {"fork", "new file", "signal"},
    ("isolate", "confine"): {"fork", "new file", "signal"},
    ("open_no_more", "confine"): {
        "file",
        "file of the process",
        "fork",
        "new file",
        "signal",
        "socket",
    },
}


@pytest.mark.skipif(
    sys.platform != "linux", reason="docs/security.md says so: only Linux confines a reader"
)
@pytest.mark.parametrize("off", REACHED, ids=" ".join)
async def test_a_document_that_takes_over_its_reader_reaches_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, off: tuple[str, ...]
) -> None:
    if "confine" in off and "isolate" not in off and not permits_namespaces():
        pytest.skip("this machine permits no user namespaces")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    connections: list[object] = []
    server = await asyncio.start_server(lambda *args: connections.append(args), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        program = _TAKEN_OVER.replace("PORT", str(port)).replace("FOLDER", str(tmp_path))
        program = program.replace("OFF]", f"{', '.join(map(repr, off))}]", 1)
        reader = ChildReader(command=(sys.executable, "-I", "-c", program))
        read = await reader.read(b"", "text/plain", ReadingTask(), ReadingShare(workspace_id="w"))
    reached = {name for name in read.pages[0].text.split(",") if name}
    # io_uring may be switched off for the whole machine.
    assert reached - {"io_uring"} == REACHED[off]
    assert connections == []


def permits_namespaces() -> bool:
    program = (
        "import sys; from tollgate.reading.confinement import isolate; sys.exit(not isolate())"
    )
    return subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root may do so")
async def test_documents_are_read_as_another_user() -> None:
    nobody = pwd.getpwnam("nobody")
    # The program can only report its user by its lifetime: it exits at once as the right user.
    same = f"os.getuid() == {nobody.pw_uid} and os.getgroups() == []"
    program = f"import os, sys, time; sys.stdin.read(); time.sleep(0 if {same} else 9)"
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    reader = ChildReader(command=(python, "-I", "-c", program), user=nobody, seconds_max=5)
    with pytest.raises(UnreadableDocument) as ended:
        await reader.read(b"", PDF, ReadingTask(), ReadingShare(workspace_id="w"))
    assert ended.value.fault is DocumentFault.CRASHED


async def test_a_reading_ends_when_its_cpu_time_is_used_up() -> None:
    share = ReadingShare(workspace_id="ws_1", cpu_seconds_max=0.05)
    # Reading all of this page takes more than a second.
    page = b"<html><body>" + b'<p>many words <a href="/x">link</a></p>' * 10_000
    with pytest.raises(UnreadableDocument) as refused:
        await ChildReader().read(page, HTML, ReadingTask(), share)
    assert refused.value.fault is DocumentFault.TOO_SLOW


@pytest.mark.nightly
async def test_sixteen_slow_documents_take_no_more_than_the_budget_of_one_request() -> None:
    reader, budget = ChildReader(), ReadingBudget("ws_1", documents=16)
    content = documents.bomb_pdf(100_000_000)

    async def read() -> None:
        async with budget.share() as taken:
            task = ReadingTask(pictures="all")
            taken.cpu_seconds = (await reader.read(content, PDF, task, taken.share)).cpu_seconds

    before_s = _children_cpu_s()
    await asyncio.gather(*(read() for _ in range(16)), return_exceptions=True)
    # The grace of a process that does not end itself, twice.
    assert _children_cpu_s() - before_s < CPU_SECONDS_MAX + 8


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
