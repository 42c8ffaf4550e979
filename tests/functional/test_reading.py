"""Documents that would break their reader: bounded in time and memory, one process each."""

import asyncio
import os
import random
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from tests import documents
from tests.nightly import first
from tollgate.core.documents.reading import (
    DocumentFault,
    ReadBatch,
    ReadDocument,
    ReaderUnavailable,
    ReadingRequest,
    ReadingShare,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.core.files.media_types import DOCX, HTML, PDF, XLSX
from tollgate.reading.child import MEMORY_BYTES_MAX
from tollgate.reading.child_reader import ChildReader
from tollgate.reading.read import perform

PICTURED = ReadingTask(pictures="all")
SHARE = ReadingShare(workspace_id="ws_1")
# A document waits for a place for half a minute at most, and is read for as long.
SECONDS_MAX = 60


async def _read(
    content: bytes, type_: str = PDF, *, reader: ChildReader | None = None
) -> ReadDocument | DocumentFault:
    start_s = time.monotonic()
    try:
        # Each document is another workspace's, so that all places may be used.
        share = ReadingShare(workspace_id=sha256(content).hexdigest())
        return await (reader or ChildReader()).read(content, type_, PICTURED, share)
    except UnreadableDocument as refused:
        return refused.fault
    finally:
        assert time.monotonic() - start_s < SECONDS_MAX


async def test_a_document_is_read_in_a_process_of_its_own() -> None:
    read = await _read(documents.pdf(["one", "two"]))
    assert [page.text for page in read.pages] == ["one", "two"]
    assert all(page.picture is not None for page in read.pages)


async def test_documents_are_read_side_by_side() -> None:
    reader = ChildReader()
    reads = await asyncio.gather(
        *(_read(documents.pdf([f"document {n}"]), reader=reader) for n in range(8))
    )
    assert [read.pages[0].text for read in reads] == [f"document {n}" for n in range(8)]


PROSE: Final = "The quick brown fox jumps over the lazy dog, and everybody reads it twice. " * 9
# Its encoding and its lists of words are loaded when they are first used.
ARTICLE: Final = f"<html><body><article><h1>Füchse</h1><p>{PROSE}</p></article>".encode("cp1252")


async def test_a_confined_process_reads_as_one_that_is_not() -> None:
    contents = [(ARTICLE, HTML), (b"<html>" + b"<div>" * 9_000, HTML)]
    contents += [(documents.word(), DOCX), (documents.workbook([("a", 1.5, None)]), XLSX)]
    reader = ChildReader()
    found = await asyncio.gather(*(_read(*content, reader=reader) for content in contents))
    for (content, type_), read in zip(contents, found, strict=True):
        reply = perform(
            ReadingRequest(media_type=type_, task=PICTURED, content=content, bytes_max=10**9)
        )
        assert isinstance(reply, ReadBatch)
        assert read.pages == reply.pages


# Prints the fault of the document on its input, and the most bytes of memory that its reader took.
_MEASURE: Final = """
import asyncio, resource, sys
from tollgate.core.documents.reading import ReadingShare, ReadingTask, UnreadableDocument
from tollgate.reading.child_reader import ChildReader

async def read(content, type_):
    try:
        share = ReadingShare(workspace_id="ws_1")
        await ChildReader().read(content, type_, ReadingTask(pictures="all"), share)
    except UnreadableDocument as refused:
        return refused.fault.value
    return "none"

fault = asyncio.run(read(sys.stdin.buffer.read(), sys.argv[1]))
print(fault, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


@pytest.mark.parametrize(
    ("write", "type_", "faults"),
    [
        pytest.param(
            *(partial(documents.bomb_pdf, 400_000_000), PDF),
            {"crashed", "too_complex", "too_slow"},
            marks=pytest.mark.nightly,
        ),
        (partial(documents.pdf, ["p"] * 10_000), PDF, {"too_many_pages"}),
        (documents.looped_pdf, PDF, {"too_many_pages", "malformed"}),
        (partial(documents.image_bomb_pdf, 60_000), PDF, None),
        (partial(documents.nested_pdf, 500_000), PDF, None),
        (lambda: b"<html>" + b"<div>" * 200_000, HTML, None),
    ],
    ids=["bomb", "pages", "loop", "image", "nested", "html"],
)
async def test_a_hostile_document_stays_within_its_limits(
    write: Callable[[], bytes], type_: str, faults: set[str] | None
) -> None:
    content = write()
    # In a process with one child, the reader: the children of this one are counted together.
    start_s = time.monotonic()
    measured = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _MEASURE, type_, stdin=PIPE, stdout=PIPE
    )
    output, _ = await measured.communicate(content)
    assert time.monotonic() - start_s < SECONDS_MAX
    found, most = output.decode().split()
    if faults is not None:
        assert found in faults
    assert int(most) <= MEMORY_BYTES_MAX


@pytest.mark.parametrize("seed", first(1, range(4)))
async def test_a_broken_pdf_is_read_or_refused(seed: int) -> None:
    whole = documents.pdf(["one", "two"], drawn=b"10 10 200 200 re f ")
    chance = random.Random(157 + seed)
    broken = [whole[: chance.randrange(len(whole))] for _ in range(3)]
    for _ in range(6):
        changed = bytearray(whole)
        for _ in range(chance.randrange(1, 12)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        broken.append(bytes(changed))
    reader = ChildReader()
    for found in await asyncio.gather(*(_read(each, reader=reader) for each in broken)):
        assert not isinstance(found, DocumentFault) or found in {
            DocumentFault.MALFORMED,
            DocumentFault.ENCRYPTED,
            DocumentFault.CRASHED,
            DocumentFault.TOO_MANY_PAGES,
            DocumentFault.TOO_COMPLEX,
        }


def _reader(program: str, *, seconds_max: float = 10) -> ChildReader:
    return ChildReader(command=(sys.executable, "-I", "-c", program), seconds_max=seconds_max)


@pytest.mark.parametrize(
    ("program", "fault"),
    [
        ("import os; os.abort()", DocumentFault.CRASHED),
        ("print('no reply')", DocumentFault.CRASHED),
        ("while True: pass", DocumentFault.TOO_SLOW),
        ("import sys\nwhile True: sys.stdout.write('x' * 1000000)", DocumentFault.CRASHED),
    ],
    ids=["abort", "words", "endless", "flood"],
)
async def test_a_reader_that_fails_costs_its_document_alone(
    program: str, fault: DocumentFault
) -> None:
    reader = _reader(program, seconds_max=3)
    assert await _read(documents.pdf(["one"]), reader=reader) is fault


async def test_a_process_sees_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    program = "import os, sys; sys.exit(bool(set(os.environ) - {'LC_CTYPE'}))"
    # Without a reply it has crashed as far as the reader knows; with a variable it had exited by 1.
    process = await asyncio.create_subprocess_exec(sys.executable, "-I", "-c", program)
    assert await process.wait() == 1
    reader = _reader(
        "import os, sys, time\n"
        "sys.stdin.read()\n"
        "time.sleep(9 if set(os.environ) - {'LC_CTYPE'} else 0)",
        seconds_max=5,
    )
    assert await _read(b"", reader=reader) is DocumentFault.CRASHED


async def test_a_caller_that_leaves_ends_the_process(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    os.mkfifo(note)
    reader = _reader(
        f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)"
    )
    reading = asyncio.create_task(reader.read(b"", PDF, PICTURED, SHARE))
    process = int(await asyncio.to_thread(note.read_text))
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    # The process was waited for, so that its id is free.
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_a_document_waits_for_slow_ones_for_a_time_that_is_limited() -> None:
    endless = (sys.executable, "-I", "-c", "while True: pass")
    reader = ChildReader(command=endless, seconds_max=60, wait_seconds_max=0.2)
    shares = [ReadingShare(workspace_id=f"ws_{n}") for n in range(5)]
    reads = [asyncio.create_task(reader.read(b"", PDF, PICTURED, each)) for each in shares]
    ended, others = await asyncio.wait(
        reads, timeout=SECONDS_MAX, return_when=asyncio.FIRST_COMPLETED
    )
    for task in others:
        task.cancel()
    await asyncio.wait(reads)
    assert [type(task.exception()) for task in ended] == [ReaderUnavailable]


async def test_a_reader_that_does_not_start_is_unavailable() -> None:
    with pytest.raises(ReaderUnavailable):
        await ChildReader(command=("/nowhere/python",)).read(b"", PDF, PICTURED, SHARE)
