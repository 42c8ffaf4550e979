"""The process that reads one document: `python -I -m tollgate.reading.child`.

The process takes a request from standard input and writes the reply to standard output. Its
environment is empty, so it has no secrets, and it cannot write files.
"""

import resource
import sys
from typing import Final

import msgspec

from tollgate.core.documents.reading import ReadingReply, ReadingRequest
from tollgate.reading.read import perform

# Limit for the address space, enough for the interpreter, PDFium and the largest document.
MEMORY_BYTES_MAX: Final = 1024 * 1024 * 1024
CPU_SECONDS_MAX: Final = 25
_OPEN_FILES_MAX: Final = 64


def main() -> None:
    """Read the document within limits that the operating system enforces."""
    _limit(resource.RLIMIT_AS, MEMORY_BYTES_MAX)
    _limit(resource.RLIMIT_CPU, CPU_SECONDS_MAX)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES_MAX)
    # The limit for file sizes does not apply to pipes, so the process can write the reply.
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=ReadingRequest)
    reply: ReadingReply = perform(request)
    sys.stdout.buffer.write(msgspec.msgpack.encode(reply))


def _limit(kind: int, limit: int) -> None:
    _, hard = resource.getrlimit(kind)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


if __name__ == "__main__":
    main()
