"""What the environment says, read once.

Keeps C45, C60, C93.
"""

import base64
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.gateways import RecordedJournal
from tests.unit.routing.catalogs import catalog
from tollgate.core.clock import SystemClock
from tollgate.core.ids import IdSource
from tollgate.settings import Settings, environment_variable
from tollgate.stores.webhooks.local_secrets import LocalSecrets
from tollgate.stores.webhooks.sealing import PlainSecrets
from tollgate.wiring.generation import wire_gateway, wire_upstream
from tollgate.wiring.observation import wire_web_limits
from tollgate.wiring.stores import wire_stores
from tollgate.wiring.webhook_secrets import wire_sealer

Environment = pytest.MonkeyPatch


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        ("*", ("*",)),
        ("https://a.example", ("https://a.example",)),
        ("https://a.example, https://b.example,", ("https://a.example", "https://b.example")),
        ("", ("*",)),
    ],
)
def test_c45_allowed_origins_are_separated_by_commas(
    monkeypatch: Environment, text: str, origins: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TOLLGATE_ALLOWED_ORIGINS", text)
    assert Settings().allowed_origins == origins


def test_a_variable_that_is_empty_is_not_set(monkeypatch: Environment) -> None:
    for name in ("TOLLGATE_DYNAMODB_ENDPOINT_URL", "AWS_SESSION_TOKEN", "A_PROVIDERS_KEY"):
        monkeypatch.setenv(name, "")
    settings = Settings()
    assert settings.dynamodb_endpoint_url is None
    assert settings.aws_session_token is None
    assert environment_variable("A_PROVIDERS_KEY") is None


def test_secrets_are_not_in_what_settings_look_like(monkeypatch: Environment) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "do-not-show")
    assert Settings().aws_secret_access_key == "do-not-show"
    assert "do-not-show" not in repr(Settings())


KEY = base64.b64encode(b"k" * 32).decode()


def test_c90_keys_of_webhooks_secrets_are_read_and_not_shown(monkeypatch: Environment) -> None:
    second = base64.b64encode(b"s" * 32).decode()
    monkeypatch.setenv("TOLLGATE_SECRETS_KEYS", f"{KEY}, {second}")
    settings = Settings()
    assert settings.secrets_keys == (b"k" * 32, b"s" * 32)
    assert "k" * 32 not in repr(settings)
    sealer = wire_sealer(settings, None, IdSource(SystemClock()))
    assert isinstance(sealer, LocalSecrets)
    assert isinstance(
        wire_sealer(Settings(secrets_keys=()), None, IdSource(SystemClock())), PlainSecrets
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("do-not-show", "Value error"),
        (base64.b64encode(b"do-not-show").decode(), "must be 32 bytes as base64"),
        (KEY, "not both"),
    ],
)
def test_a_key_of_webhooks_secrets_that_is_none_is_refused_and_not_shown(
    monkeypatch: Environment, text: str, problem: str
) -> None:
    monkeypatch.setenv("TOLLGATE_SECRETS_KEYS", text)
    if text == KEY:
        monkeypatch.setenv("TOLLGATE_SECRETS_KMS_KEY", "arn:aws:kms:us-east-1:1:key/a")
    with pytest.raises(ValidationError, match=problem) as refused:
        Settings()
    assert text not in str(refused.value)


def test_c93_a_deployment_names_variables_that_may_hold_keys(monkeypatch: Environment) -> None:
    assert not Settings().variables.allows("HF_TOKEN")
    monkeypatch.setenv("TOLLGATE_KEY_VARIABLES", "HF_TOKEN, ACME_*")
    variables = Settings().variables
    assert variables.allows("HF_TOKEN")
    assert variables.allows("ACME_SECRET")
    assert not variables.allows("AWS_SECRET_ACCESS_KEY")


@pytest.mark.parametrize(("text", "accepted"), [("29", False), ("30", True), ("3651", False)])
def test_records_outlive_the_days_that_are_still_open(
    monkeypatch: Environment, text: str, accepted: bool
) -> None:
    monkeypatch.setenv("TOLLGATE_RECORD_DAYS", text)
    if accepted:
        assert Settings().record_days == int(text)
        return
    with pytest.raises(ValidationError):
        Settings()


def test_google_credentials_are_those_of_the_variable_or_of_gcloud(
    monkeypatch: Environment,
) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/etc/gcloud")
    assert Settings().google_file == Path("/etc/gcloud/application_default_credentials.json")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/etc/google.json")
    assert Settings().google_file == Path("/etc/google.json")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.delenv("CLOUDSDK_CONFIG")
    monkeypatch.setenv("HOME", "/home/ada")
    expected = "/home/ada/.config/gcloud/application_default_credentials.json"
    assert str(Settings().google_file) == expected


def test_c60_trusted_proxies_are_networks(monkeypatch: Environment) -> None:
    assert wire_web_limits(Settings()).trusted_proxies == ()
    monkeypatch.setenv("TOLLGATE_TRUSTED_PROXIES", "10.0.0.0/8, 2001:db8::1")
    assert wire_web_limits(Settings()).trusted_proxies == ("10.0.0.0/8", "2001:db8::1")
    monkeypatch.setenv("TOLLGATE_TRUSTED_PROXIES", "10.0.0.1/8")
    with pytest.raises(ValidationError):
        Settings()


@pytest.mark.parametrize(
    ("variables", "held"),
    [
        ({}, 64 * 1024 * 1024),
        ({"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024"}, 128 * 1024 * 1024),
        (
            {
                "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1024",
                "TOLLGATE_REQUEST_BUFFER_BYTES_MAX": "1000",
            },
            1000,
        ),
        (
            {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "2048", "AWS_LAMBDA_MAX_CONCURRENCY": "16"},
            64 * 1024 * 1024,
        ),
    ],
)
def test_c47_the_bytes_of_a_request_fit_the_functions_memory(
    monkeypatch: Environment, variables: dict[str, str], held: int
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    settings = Settings()
    assert settings.request_buffer_bytes == held
    assert wire_upstream(settings, SystemClock()).buffers.request_bytes_max == held


def test_c47_gateways_of_all_catalogs_share_one_budget() -> None:
    settings, clock, journal = Settings(), SystemClock(), RecordedJournal([])
    stores, upstream = wire_stores(settings, clock), wire_upstream(settings, clock)
    one, other = (
        wire_gateway(stores, upstream, catalog(), clock=clock, journal=journal) for _ in range(2)
    )
    assert one.buffers is other.buffers is upstream.buffers


@pytest.mark.parametrize(
    "name", ["TOLLGATE_REQUEST_BUFFER_BYTES_MAX", "TOLLGATE_PROCESS_BUFFER_BYTES_MAX"]
)
def test_c47_a_budget_of_nothing_is_refused(monkeypatch: Environment, name: str) -> None:
    monkeypatch.setenv(name, "0")
    with pytest.raises(ValidationError):
        Settings()
