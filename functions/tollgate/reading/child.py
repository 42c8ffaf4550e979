"""The process that reads one document: `python -I -m tollgate.reading.child`.

The process reads a request from standard input and writes the reply to standard output. The process
has no access to secrets, because its environment is empty; it cannot write files.
"""

import resource
import sys
from typing import Final

import msgspec

from tollgate.core.documents.reading import ReadingReply, ReadingRequest
from tollgate.reading.perform import perform

# Limit of address space, with room for PDFium, the interpreter and a document of the largest size.
MEMORY_BYTES_MAX: Final = 1024 * 1024 * 1024
CPU_SECONDS_MAX: Final = 25
_OPEN_FILES_MAX: Final = 64


def main() -> None:
    """Read the document from standard input, within limits that the operating system enforces."""
    _limit(resource.RLIMIT_AS, MEMORY_BYTES_MAX)
    _limit(resource.RLIMIT_CPU, CPU_SECONDS_MAX)
    _limit(resource.RLIMIT_NOFILE, _OPEN_FILES_MAX)
    # The limit of file sizes does not apply to pipes, so the reply can be written.
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
