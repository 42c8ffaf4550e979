"""The process that reads one document: `python -I -m tollgate.reading.child`.

The process takes a request from standard input and writes the reply to standard output. Its
environment is empty, so it has no secrets, and it cannot write files. Before it opens the document,
it gives up every right that it does not need (`confinement.py`). With the argument `--confinement`
the process reads no document, and reports the rights that it was able to give up.
"""

import codecs
import encodings
import math
import resource
import sys
from contextlib import suppress
from pkgutil import iter_modules
from typing import Final

import msgspec

from tollgate.core.documents.reading import ReadingReply, ReadingRequest, UnreadableDocument
from tollgate.core.files.media_types import HTML, XHTML
from tollgate.reading.confinement import (
    CONFINEMENT_ARGUMENT,
    Confinement,
    confine,
    isolate,
    open_no_more,
)
from tollgate.reading.limited import perform_in_time
from tollgate.reading.read import find_opener

# Limit for the address space, enough for the interpreter, PDFium and the largest document.
MEMORY_BYTES_MAX: Final = 1024 * 1024 * 1024
# The operating system ends a process that does not end itself when its CPU time is used up.
_GRACE_CPU_SECONDS: Final = 2
_OPEN_FILES_MAX: Final = 64
# Encodings of text files and of names in archives; web pages may use any encoding. Python imports
# each encoding on first use.
_ENCODINGS: Final = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252", "cp437")
_WEB_PAGES: Final = (HTML, XHTML)
# trafilatura loads its lists of words with the first page whose main text is hard to find.
_SAMPLE_PAGE: Final = (
    b"<html><title>A</title><body><div><p>A <a href='/b'>b</a></p></div></body></html>"
)


def main() -> None:
    """Read the document within limits that the operating system enforces."""
    _limit(resource.RLIMIT_AS, MEMORY_BYTES_MAX)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES_MAX)
    # The limit for file sizes does not apply to pipes, so the process can write the reply.
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    is_isolated = isolate()
    if CONFINEMENT_ARGUMENT in sys.argv:
        shown = Confinement(namespaces=is_isolated, seccomp=confine())
        sys.stdout.buffer.write(msgspec.msgpack.encode(shown))
        return
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=ReadingRequest)
    _limit_cpu(request.cpu_seconds_max)
    _prepare(request)
    open_no_more()
    confine()
    reply: ReadingReply = perform_in_time(request, start_s=0.0)
    sys.stdout.buffer.write(msgspec.msgpack.encode(reply))


def _prepare(request: ReadingRequest) -> None:
    """Import and load what reading needs, because a confined process opens no file."""
    with suppress(UnreadableDocument):
        open_ = find_opener(request.media_type)
        if request.media_type.lower().startswith(_WEB_PAGES):
            open_(_SAMPLE_PAGE, request.task)
            for module in iter_modules(encodings.__path__):
                with suppress(LookupError):
                    codecs.lookup(module.name)
    for encoding in _ENCODINGS:
        codecs.lookup(encoding)


def _limit_cpu(seconds: float) -> None:
    """Let the operating system send SIGXCPU after limit and grace period, and SIGKILL later."""
    limit = math.ceil(seconds) + _GRACE_CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))


def _limit(kind: int, limit: int) -> None:
    _, hard = resource.getrlimit(kind)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


if __name__ == "__main__":
    main()
