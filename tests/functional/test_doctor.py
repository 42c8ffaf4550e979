"""`tollgate doctor`: every check seen to pass, and each seen to fail.

Keeps C33, C35.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from click.testing import CliRunner, Result
from moto import mock_aws

from tests.clocks import STARTED_S, FixedClock
from tests.scripted_gateway import EVENTS, KEY, SHA, ScriptedGateway, scripted_gateway
from tollgate.cli.main import main
from tollgate.cli.stack.aws_account import AccountError, AwsAccount, ModelAccess
from tollgate.cli.stack.doctor import CHECKS, CheckResult, Patient, examine
from tollgate.cli.stack.probe import Probe
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.permissions import MantleModels

OPEN = ModelAccess(in_region=True, subscribed=True, authorized=True)
MANTLE = MantleModels(
    region="us-east-1",
    host="bedrock-mantle.us-east-1.api.aws",
    models=("google.gemma-4-31b", "openai.gpt-5.5"),
)
ROUTING = Path(__file__).parents[2] / "routing.yaml"


class TickingClock(FixedClock):
    """A second passes whenever it is looked at."""

    ticks = 0

    def monotonic_s(self) -> float:
        self.ticks += 1
        return float(self.ticks)


class HeldBackClock(FixedClock):
    """All time passes before the first event."""

    asked = False

    def monotonic_s(self) -> float:
        before, self.asked = self.asked, True
        return 10.0 if before else 0.0


class Account:
    def __init__(
        self,
        missing: tuple[str, ...] = (),
        concurrency: int = 1000,
        access: ModelAccess = OPEN,
        listed: frozenset[str] = frozenset({"openai.gpt-5.5", "google.gemma-4-31b"}),
    ) -> None:
        self.missing = missing
        self.concurrency = concurrency
        self.access = access
        self.listed = listed

    def model_access(self, model_id: str) -> ModelAccess:
        return self.access

    def mantle_models(self, address: str, region: str) -> frozenset[str]:
        assert (address, region) == ("https://bedrock-mantle.us-east-1.api.aws", "us-east-1")
        return self.listed

    def has_secret(self, name: str) -> bool:
        return name not in self.missing

    def concurrency_max(self) -> int:
        return self.concurrency


class NoAccount:
    def has_secret(self, name: str) -> bool:
        raise AccountError(f"secret {name}: AccessDenied")

    def concurrency_max(self) -> int:
        raise AccountError("Lambda's quota: AccessDenied")

    def model_access(self, model_id: str) -> ModelAccess:
        raise AccountError(f"Bedrock model {model_id}: AccessDenied")

    def mantle_models(self, address: str, region: str) -> frozenset[str]:
        raise AccountError("the models of Bedrock's Mantle: AccessDenied")


@pytest.fixture
def gateway() -> Iterator[ScriptedGateway]:
    with scripted_gateway() as script:
        yield script


def findings(
    gateway: ScriptedGateway,
    account: Account | NoAccount | None = None,
    key: str | None = KEY,
    clock: FixedClock | None = None,
) -> list[CheckResult]:
    ticking = clock or TickingClock()
    patient = Patient(
        probe=Probe(gateway.base_url, key, ticking),
        account=account or Account(),
        clock=ticking,
        catalog_sha=SHA,
        secrets=("tollgate/openai", "tollgate/groq"),
        bedrock_models=("amazon.nova-2-lite-v1:0",),
        mantle=(MANTLE,),
        model="fast",
        has_key=key is not None,
    )
    return list(examine(patient))


def failures(found: list[CheckResult]) -> list[str]:
    return [it.what for it in found if it.severity == "FAIL"]


def test_a_stack_that_works_has_a_line_for_every_check(gateway: ScriptedGateway) -> None:
    found = findings(gateway)
    assert [it.severity for it in found] == ["ok"] * len(CHECKS)
    assert found[-1].what == "stream: 4 events over 3.0 s"


def test_a_store_that_is_away_fails(gateway: ScriptedGateway) -> None:
    gateway.ready = 503
    assert failures(findings(gateway)) == ["the gateway is not ready: 503 The store is away."]


def test_another_catalog_than_mains_fails(gateway: ScriptedGateway) -> None:
    gateway.sha = "b" * 64
    (failure,) = failures(findings(gateway))
    assert failure == f"the stack serves catalog {'b' * 12}, routing.yaml is {'a' * 12}"


@pytest.mark.parametrize("off_s", [-61, 61])
def test_a_clock_that_is_off_fails(gateway: ScriptedGateway, off_s: int) -> None:
    gateway.now_s = STARTED_S + off_s
    assert failures(findings(gateway)) == ["this clock is 61 s off"]


def test_a_missing_secret_is_a_warning_since_chains_pass_over_it(gateway: ScriptedGateway) -> None:
    found = findings(gateway, Account(missing=("tollgate/groq",)))
    assert failures(found) == []
    (finding,) = (it for it in found if it.severity == "warn")
    assert finding.what == "1 of 2 secrets are missing: tollgate/groq"
    assert "create-secret --name tollgate/groq" in finding.remedy


def test_the_quota_of_a_new_account_is_a_warning(gateway: ScriptedGateway) -> None:
    found = findings(gateway, Account(concurrency=10))
    assert [it.severity for it in found].count("warn") == 1
    assert failures(found) == []


@pytest.mark.parametrize(
    ("access", "said"),
    [
        (ModelAccess(in_region=False, subscribed=True, authorized=True), "are not in this region"),
        (ModelAccess(in_region=True, subscribed=False, authorized=True), "are not open"),
        (ModelAccess(in_region=True, subscribed=True, authorized=False), "are not open"),
    ],
)
def test_a_bedrock_model_that_is_not_open_is_a_warning(
    gateway: ScriptedGateway, access: ModelAccess, said: str
) -> None:
    found = findings(gateway, Account(access=access))
    (warning,) = (it for it in found if it.severity == "warn")
    assert said in warning.what
    assert "amazon.nova-2-lite-v1:0" in warning.what
    assert failures(found) == []


def test_what_aws_does_not_tell_is_a_failure_and_the_rest_is_checked(
    gateway: ScriptedGateway,
) -> None:
    found = findings(gateway, NoAccount())
    assert len(failures(found)) == 4
    assert all("AccessDenied" in it for it in failures(found))
    assert found[-1].what.startswith("stream: ")


@pytest.mark.parametrize(
    ("key", "said"),
    [(None, "no key for requests is set"), ("sk-tg-other", "the key is not accepted")],
)
def test_a_key_that_is_missing_or_wrong_fails(
    gateway: ScriptedGateway, key: str | None, said: str
) -> None:
    assert failures(findings(gateway, key=key))[0].startswith(said)


def test_c35_a_stream_that_is_held_back_fails(gateway: ScriptedGateway) -> None:
    (failure,) = failures(findings(gateway, clock=HeldBackClock()))
    assert failure == "the stream is buffered: 4 events arrived at once"


def test_c35_a_stream_whose_length_was_known_was_buffered(gateway: ScriptedGateway) -> None:
    gateway.content_length = True
    (failure,) = failures(findings(gateway))
    assert failure.startswith("the stream is buffered")


@pytest.mark.parametrize(
    "events",
    [EVENTS[:-1], [*EVENTS[:2], b'data: {"error":{"code":"provider_timeout"}}\n\n', EVENTS[-1]]],
)
def test_c33_a_stream_that_breaks_off_fails(gateway: ScriptedGateway, events: list[bytes]) -> None:
    gateway.events = events
    (failure,) = failures(findings(gateway))
    assert failure == "fast does not finish its answer"


def test_a_model_that_does_not_answer_fails_with_what_was_said(gateway: ScriptedGateway) -> None:
    gateway.chat = 502
    assert failures(findings(gateway)) == ["fast does not answer: 502 No provider answered."]


def test_no_gateway_at_all_fails_every_check_that_asks_it() -> None:
    found = findings(ScriptedGateway(port=1))
    assert len(failures(found)) == len(CHECKS) - 4
    assert all("does not answer" in it for it in failures(found))


def test_a_model_that_mantle_does_not_list_is_a_warning(gateway: ScriptedGateway) -> None:
    found = findings(gateway, Account(listed=frozenset({"openai.gpt-5.5"})))
    (warned,) = (it for it in found if it.severity == "warn")
    assert warned.what == "models that Mantle does not have in us-east-1: google.gemma-4-31b"


@pytest.mark.usefixtures("account")
def test_mantles_models_are_listed_with_a_signature_for_its_region(
    gateway: ScriptedGateway,
) -> None:
    listed = AwsAccount("us-east-1").mantle_models(gateway.url, "us-west-2")
    assert listed == {"openai.gpt-5.5"}
    assert "/us-west-2/bedrock-mantle/aws4_request" in gateway.signed[0]


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    ("path", "why"), [("/unreadable", "the answer is not a list"), ("/nowhere", "HTTP 404")]
)
def test_mantles_refusal_says_what_was_asked(path: str, why: str, gateway: ScriptedGateway) -> None:
    with pytest.raises(AccountError, match=f"Mantle in us-east-1: {why}"):
        AwsAccount("us-east-1").mantle_models(f"{gateway.url}{path}", "us-east-1")


@pytest.fixture
def account(gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A stack, its secrets in moto; moto knows neither Lambda's account settings nor Bedrock."""
    gateway.sha = compile_catalog(ROUTING).sha
    gateway.closed_models = ("anthropic.claude-opus-5-5",)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", gateway.url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK", gateway.url)
    # The scripted gateway is no proxy, so Mantle cannot be reached.
    monkeypatch.setenv("HTTPS_PROXY", gateway.url)
    monkeypatch.setenv("TOLLGATE_API_KEY", KEY)
    outputs = {
        "ApiUrl": gateway.base_url,
        "CoreTableName": "c",
        "LedgerTableName": "l",
        "GenerationsTableName": "g",
        "ObjectsBucketName": "o",
    }
    template = {
        "Resources": {"T": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in outputs.items()},
    }
    with mock_aws():
        boto3.client("cloudformation", "us-east-1").create_stack(
            StackName="tollgate", TemplateBody=json.dumps(template)
        )
        secrets = boto3.client("secretsmanager", "us-east-1")
        for name in ("openai", "groq", "fireworks"):
            secrets.create_secret(Name=f"tollgate/{name}", SecretString="synthetic")
        yield


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["doctor", str(ROUTING), "--region", "us-east-1", *arguments])


@pytest.mark.usefixtures("account")
def test_the_command_finds_the_stack_and_exits_with_one_for_a_failure() -> None:
    result = run()
    assert result.exit_code == 1
    assert re.search(r"warn  \d+ of \d+ secrets are missing: .* and \d+ more\n", result.output)
    assert "ok    Lambda may run 1000 environments at once" in result.output
    assert "ok    the stack serves catalog" in result.output
    (closed,) = (line for line in result.output.splitlines() if "are not open" in line)
    assert closed.startswith("warn  Bedrock models that are not open to this account: anthropic.")
    *_, title, first, second, third = result.output.splitlines()
    assert (title, first[:5], second[:5], third[:5]) == ("Next:", "  1. ", "  2. ", "  3. ")
    assert "aws secretsmanager create-secret" in f"{first}{second}{third}"
    assert "FAIL  the models of Bedrock's Mantle in us-east-1: " in result.output
    assert KEY not in result.output


@pytest.mark.usefixtures("account")
def test_the_region_is_that_of_the_deployed_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "samconfig.toml").write_text(
        "version = 0.1\n[prod.deploy.parameters]\nstack_name = 'elsewhere'\n"
        "[default.deploy.parameters]\nstack_name = 'tollgate'\nregion = 'us-east-1'\n"
    )
    monkeypatch.chdir(tmp_path)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    checked = CliRunner().invoke(main, ["doctor", str(ROUTING)])
    assert "ok    the stack serves catalog" in checked.output
    unknown = CliRunner().invoke(main, ["doctor", str(ROUTING), "--stack", "elsewhere"])
    assert "no region is set" in unknown.output


@pytest.mark.usefixtures("account")
def test_the_command_says_which_stack_it_did_not_find() -> None:
    result = run("--stack", "elsewhere")
    assert result.exit_code == 1
    assert result.output.startswith("Error: stack elsewhere: ")
