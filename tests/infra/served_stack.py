"""The gateway of a deployed stack, served by `tollgate serve`: the emulator runs no functions."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import boto3

from tests.ministack import free_port, wait_until_it_answers

# Variables of `serve`, and the outputs of a stack that they repeat.
_STORES: Final = {
    "TOLLGATE_CORE_TABLE": "CoreTableName",
    "TOLLGATE_LEDGER_TABLE": "LedgerTableName",
    "TOLLGATE_GENERATIONS_TABLE": "GenerationsTableName",
    "TOLLGATE_OBJECTS_BUCKET": "ObjectsBucketName",
}


def client(account: Mapping[str, str], service: str) -> Any:
    """Return a client of a service in an account."""
    return boto3.client(
        service,
        "us-east-1",
        endpoint_url=account["AWS_ENDPOINT_URL"],
        aws_access_key_id="synthetic",
        aws_secret_access_key="synthetic",
    )


@contextmanager
def serving_stack(
    command: Path, folder: Path, account: Mapping[str, str], variables: Mapping[str, str]
) -> Iterator[str]:
    """Serve the tables of the stack `tollgate` from its repository, and yield the base URL."""
    found = client(account, "cloudformation").describe_stacks(StackName="tollgate")
    outputs = {it["OutputKey"]: it["OutputValue"] for it in found["Stacks"][0]["Outputs"]}
    catalog = Path(account["HOME"]) / "catalog.json"
    subprocess.run(
        [command, "compile", "--output", catalog],
        env=dict(variables),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    port = free_port()
    stores = {name: outputs[output] for name, output in _STORES.items()}
    served = {"AWS_REGION": "us-east-1", "TOLLGATE_CATALOG_FILE": str(catalog)}
    with catalog.with_name("serve.log").open("wb") as log:
        process = subprocess.Popen(
            [command, "serve", "--port", str(port), "--drain-s", "1"],
            env={**account, **variables, **stores, **served},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
        try:
            url = f"http://127.0.0.1:{port}/api/v1"
            wait_until_it_answers(f"{url}/health/ready", process)
            yield url
        finally:
            process.terminate()
            process.wait()
