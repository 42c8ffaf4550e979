"""One other gateway in a process of its own: python -m bench.compare.peer UPSTREAM_PORT NAME"""

import asyncio
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import DEVNULL, Process
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.children import announce
from bench.compare.peers import PEERS, Peer

_START_S_MAX = 120.0


async def main(upstream_port: int, peer: Peer) -> None:
    """Run the gateway until this process is ended."""
    upstream = f"http://127.0.0.1:{upstream_port}"
    port = _free_port()
    with TemporaryDirectory() as folder:
        for name, text in peer.files.items():
            (Path(folder) / name).write_text(text.replace("{upstream}", upstream))
        process = await asyncio.create_subprocess_exec(
            *(
                part.replace("{port}", str(port)).replace("{folder}", folder)
                for part in peer.command
            ),
            env={**os.environ, **peer.environment},
            cwd=folder,
            stdout=DEVNULL,
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, process.terminate)
        await _wait_until_open(port, process)
        announce(
            port=port,
            doors={
                name: {
                    "prefix": door.prefix,
                    "headers": {
                        header: value.replace("{upstream}", upstream)
                        for header, value in door.headers.items()
                    },
                }
                for name, door in (("sse", peer.sse), ("bedrock", peer.bedrock))
            },
        )
        await process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


async def _wait_until_open(port: int, process: Process) -> None:
    """Return when the gateway listens; raise RuntimeError if it ends or is late."""
    started_s = time.monotonic()
    while process.returncode is None and time.monotonic() - started_s < _START_S_MAX:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise RuntimeError(f"nothing listens on port {port}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), PEERS[sys.argv[2]]))
