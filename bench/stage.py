"""Preparation of the tables, catalog and key of a function, with the code of its own checkout.

Usage: python -P stage.py UPSTREAM_PORT DYNAMODB_URL CATALOG_FILE, with that checkout on the path.
It prints the secret of a funded key. An older checkout reads only tables and catalogs that its own
code wrote, so this module imports only names that all checkouts have.
"""

import asyncio
import sys
from pathlib import Path

from bench.accounts import prepare_account
from bench.catalogs import compile_bench_catalog
from tollgate.core.clock import SystemClock
from tollgate.settings import Settings
from tollgate.wiring.stores import wire_stores


async def make_key(settings: Settings) -> str:
    """Create the tables and return the secret of a funded key."""
    clock = SystemClock()
    stores = wire_stores(settings, clock)
    try:
        return await prepare_account(settings, stores, clock)
    finally:
        await stores.aclose()


def main(upstream_port: int, dynamodb_url: str, catalog_file: Path) -> None:
    """Compile the catalog, create the tables, and print the key."""
    catalog_file.write_bytes(compile_bench_catalog(upstream_port))
    settings = Settings(dynamodb_endpoint_url=dynamodb_url, catalog_file=catalog_file)
    print(asyncio.run(make_key(settings)))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
