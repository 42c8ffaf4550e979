"""`tollgate first-key`: shown once, made once, by whoever may write the tables.

Keeps C60.
"""

import asyncio
import json
import os

import boto3
import pytest
from click.testing import CliRunner, Result
from moto import mock_aws

from tests.ministack import ministack_url
from tollgate.cli.main import main
from tollgate.core.clock import SystemClock
from tollgate.core.principal import Principal
from tollgate.settings import Settings
from tollgate.wiring.stores import wire_stores

__all__ = ["ministack_url"]


@pytest.fixture
def tables(ministack_url: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Empty tables, made as a stack would."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("TOLLGATE_DYNAMODB_ENDPOINT_URL", ministack_url)
    name = os.urandom(6).hex()
    settings = Settings(
        core_table=f"{name}-core",
        ledger_table=f"{name}-ledger",
        generations_table=f"{name}-generations",
    )
    asyncio.run(create(settings))
    return settings


async def create(settings: Settings) -> None:
    stores = wire_stores(settings, SystemClock())
    await stores.create_tables()
    await stores.aclose()


async def authenticated(settings: Settings, secret: str) -> Principal:
    stores = wire_stores(settings, SystemClock())
    try:
        return await stores.keys.authenticate(secret)
    finally:
        await stores.aclose()


def first_key(settings: Settings) -> Result:
    outputs = {
        "ApiUrl": "https://unused.example/api/v1",
        "CoreTableName": settings.core_table,
        "LedgerTableName": settings.ledger_table,
        "GenerationsTableName": settings.generations_table,
        "ObjectsBucketName": "unused",
    }
    template = {
        "Resources": {"T": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    with mock_aws():
        boto3.client("cloudformation", "us-east-1").create_stack(
            StackName="tollgate", TemplateBody=json.dumps(template)
        )
        return CliRunner().invoke(main, ["first-key", "--region", "us-east-1"])


def test_c60_the_first_key_is_a_management_key_that_works(tables: Settings) -> None:
    result = first_key(tables)
    assert result.exit_code == 0, result.output
    secret = result.output.split()[-1]
    principal = asyncio.run(authenticated(tables, secret))
    assert (principal.workspace_id, principal.role) == ("default", "management")


def test_a_second_first_key_is_refused_and_names_the_first(tables: Settings) -> None:
    secret = first_key(tables).output.split()[-1]
    again = first_key(tables)
    assert again.exit_code == 1
    assert "has the management key" in again.output
    assert secret not in again.output


def test_without_a_region_it_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    result = CliRunner().invoke(main, ["first-key"])
    assert result.exit_code == 1
    assert "give --region or set AWS_REGION" in result.output
    with mock_aws():
        result = CliRunner(env={"AWS_REGION": "us-east-1"}).invoke(main, ["first-key"])
    assert "Stack with id tollgate does not exist" in result.output


def test_without_credentials_it_says_what_sets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    result = CliRunner().invoke(main, ["first-key", "--region", "us-east-1"])
    assert result.exit_code == 1
    assert "no AWS credentials here: set them with `aws configure`" in result.output
