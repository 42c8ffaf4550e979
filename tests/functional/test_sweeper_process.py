"""The scheduled function as a process: what it tells when it could not do its work."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

FUNCTIONS: Final = Path(__file__).parents[2] / "functions"
AUDIT: Final = "import sweeper; sweeper.handler({'task': 'audit'}, None)"


def test_an_audit_that_cannot_be_made_counts_as_a_difference_and_fails() -> None:
    result = subprocess.run(
        [sys.executable, "-c", AUDIT],
        cwd=FUNCTIONS,
        env={
            "PATH": os.defpath,
            "AWS_REGION": "eu-central-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            # Nobody listens there (RFC 6335: port 1 is assigned, and to nothing that is run).
            "TOLLGATE_DYNAMODB_ENDPOINT_URL": "http://127.0.0.1:1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    said = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert [line["AuditDifference"] for line in said if "AuditDifference" in line] == [[1.0]]
