"""The process that reads one document: `python -I -m tollgate.reading.child`.

It takes a request on standard input and writes the reply to standard output. It has no secret: its
environment is empty, and it may open no file for writing.
"""

import resource
import sys
from typing import Final

import msgspec

from tollgate.core.documents.messages import ReadingReply, ReadingRequest
from tollgate.reading.perform import perform

# Of addresses: PDFium, the interpreter and a document of the largest size have room in it.
MEMORY_BYTES_MAX: Final = 1024 * 1024 * 1024
CPU_SECONDS_MAX: Final = 25
_OPEN_FILES_MAX: Final = 64


def main() -> None:
    """Read the document of standard input within limits that hold whatever it does."""
    _limit(resource.RLIMIT_AS, MEMORY_BYTES_MAX)
    _limit(resource.RLIMIT_CPU, CPU_SECONDS_MAX)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES_MAX)
    # Pipes have no limit of size; files that are written do.
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    request = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=ReadingRequest)
    reply: ReadingReply = perform(request)
    sys.stdout.buffer.write(msgspec.msgpack.encode(reply))


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
