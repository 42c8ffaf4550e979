"""The fault test, ended at its first violation: how a run over a seeded bug is told from others.

`python -m tests.faults.first_violation <endpoint> <seconds> <seed> <late_max_s> <wallet>...` prints
what the run found.
"""

import asyncio
import json
import sys
from collections.abc import Sequence

from tests.faults.checks import Findings
from tests.faults.run import RICH, STARVED, run


async def main(
    endpoint_url: str, seconds: float, seed: int, late_max_s: float, names: Sequence[str]
) -> int:
    """Run the wallets with these names at once, until the first violation; the exit status."""
    wallets = [wallet for wallet in (RICH, STARVED) if wallet.name in names]
    found = [Findings() for _ in wallets]
    runs = [
        asyncio.create_task(
            run(
                endpoint_url,
                wallet,
                seconds=seconds,
                seed=seed,
                late_max_s=late_max_s,
                findings=findings,
            )
        )
        for wallet, findings in zip(wallets, found, strict=True)
    ]
    first = [asyncio.create_task(findings.violated.wait()) for findings in found]
    ended = asyncio.gather(*runs)
    # What still works after a violation is ended along with this process.
    await asyncio.wait([ended, *first], return_when=asyncio.FIRST_COMPLETED)
    for wallet, findings in zip(wallets, found, strict=True):
        print(wallet.name, json.dumps(findings.counts, sort_keys=True))
        for violation in findings.violations[:5]:
            print("VIOLATION", violation)
    violated = any(findings.violations for findings in found)
    if not violated:
        ended.result()
    return int(violated)


if __name__ == "__main__":
    url, length, place, late, *chosen = sys.argv[1:]
    sys.exit(asyncio.run(main(url, float(length), int(place), float(late), chosen)))
