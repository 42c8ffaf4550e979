"""`tollgate serve` itself, in its own process, with two workspaces of one key each.

A single key, or a single shard of a wallet, allows at most a thousand concurrent requests.

Usage: python -m bench.gateways.served UPSTREAM_PORT DYNAMODB_URL
"""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.local_server import TOLLGATE

from bench.accounts import WORKSPACES, prepare_account
from bench.catalogs import compile_bench_catalog
from bench.children import announce
from tollgate.core.clock import SystemClock
from tollgate.settings import Settings
from tollgate.wiring.stores import wire_stores


async def main(upstream_port: int, dynamodb_url: str) -> None:
    """Run the server until this process is ended."""
    with TemporaryDirectory() as folder:
        catalog_file = Path(folder) / "routing.json"
        catalog_file.write_bytes(compile_bench_catalog(upstream_port))
        settings = Settings(dynamodb_endpoint_url=dynamodb_url, catalog_file=catalog_file)
        clock = SystemClock()
        stores = wire_stores(settings, clock)
        keys = [
            await prepare_account(settings, stores, clock, workspace) for workspace in WORKSPACES
        ]
        process = await asyncio.create_subprocess_exec(
            *(TOLLGATE, "serve", "--port", "0"),
            env={
                **os.environ,
                "TOLLGATE_DYNAMODB_ENDPOINT_URL": dynamodb_url,
                "TOLLGATE_CATALOG_FILE": str(catalog_file),
            },
            stdout=PIPE,
            stderr=STDOUT,
        )
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, process.terminate)
        assert process.stdout is not None
        line = await process.stdout.readline()
        found = re.search(rb" on 127\.0\.0\.1:(\d+)\.", line)
        if found is None:
            sys.exit((line + await process.stdout.read()).decode())
        announce(port=int(found[1]), key=keys[0], keys=keys)
        # The server logs one line per request; reading them keeps the pipe from filling up.
        while await process.stdout.read(65_536):
            pass
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
