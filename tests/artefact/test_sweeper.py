"""The scheduled function's artefact, run once against tables of its own."""

import json
import subprocess
from pathlib import Path
from typing import Final

from tests.deployment import Deployment

RUN_ONCE: Final = "import sys; sys.path.insert(0, '.'); import sweeper; sweeper.handler({}, None)"


def test_the_sweeper_runs_from_its_artefact_and_counts_what_it_found(
    deployment: Deployment, interpreter: str, for_host: Path
) -> None:
    settings = deployment.settings
    result = subprocess.run(
        [interpreter, "-I", "-S", "-c", RUN_ONCE],
        cwd=for_host / "SweeperFunction",
        env={
            "AWS_REGION": "us-east-1",
            "TOLLGATE_CORE_TABLE": settings.core_table,
            "TOLLGATE_LEDGER_TABLE": settings.ledger_table,
            "TOLLGATE_GENERATIONS_TABLE": settings.generations_table,
            "TOLLGATE_DYNAMODB_ENDPOINT_URL": str(settings.dynamodb_endpoint_url),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    metrics = json.loads(result.stdout.splitlines()[0])
    assert metrics["HoldsFound"] == [0.0]
