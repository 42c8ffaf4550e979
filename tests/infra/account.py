"""An AWS account on loopback: ministack, with the SAM CLI's translator for the transform."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.infra.translation import ROOT
from tests.ministack import running_ministack

SAM = ROOT / ".tools" / "sam" / "bin" / "sam"
_SERVICES = (
    "apigateway,budgets,cloudformation,cloudwatch,dynamodb,events,iam,lambda,logs,s3"
    ",secretsmanager,sns,sts"
)


@contextmanager
def running_account(directory: Path) -> Iterator[dict[str, str]]:
    """Run an empty account; yield the environment of a terminal that is signed in to it."""
    (translator,) = SAM.parents[1].glob("lib/python*/site-packages")
    with running_ministack(directory, services=_SERVICES, packages=translator) as url:
        yield {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "COLUMNS": "200",
            "SAM_CLI_TELEMETRY": "0",
            "AWS_ACCESS_KEY_ID": "synthetic",
            "AWS_SECRET_ACCESS_KEY": "synthetic",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ENDPOINT_URL": url,
            "TOLLGATE_DYNAMODB_ENDPOINT_URL": url,
            "TOLLGATE_S3_ENDPOINT_URL": url,
            "PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}",
        }


def deploy_command(config: Path, *arguments: str) -> list[str]:
    """Return the command that deploys what is built."""
    command = "from tollgate.cli.main import main; main()"
    options = ("deploy", "--no-build", "--config", str(config))
    return [sys.executable, "-c", command, *options, *arguments]
