"""The examples of docs/infrastructure.md are held to the template, the image and `serve`.

Keeps no contract statement.
"""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from unittest.mock import MagicMock

import boto3  # type: ignore[import-untyped]
import pytest
import yaml
from msgspec import ValidationError, convert
from samtranslator.yaml_helper import yaml_parse

from tests.infra.kubernetes_objects import (
    CronJob,
    Deployment,
    KubernetesObject,
    Kustomization,
    PodSpec,
    Service,
)
from tests.infra.test_sam_validate import SAM
from tests.infra.translation import ROOT, TEMPLATE, JsonObject, Stack, load_template
from tests.moto_server import running_moto
from tollgate.cli.server.serve import serve
from tollgate.settings import Settings
from tollgate.web.access import ACCESS

EXAMPLES: Final = ROOT / "docs" / "examples" / "infrastructure"
# CloudFormation's quotas: docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/
# cloudformation-limits.html (2026-11-27).
INLINE_BYTES_MAX: Final = 51_200
BUCKET_BYTES_MAX: Final = 1_048_576
RESOURCES_MAX, PARAMETERS_MAX, OUTPUTS_MAX = 500, 200, 200
CAPABILITIES: Final = ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]
# Seconds that a process needs after its streams were cancelled: docs/container.md.
SETTLING_S: Final = 10


@pytest.fixture(scope="module")
def source() -> JsonObject:
    return load_template()


def drain_s() -> int:
    """Return the seconds that `serve` gives running streams by default."""
    [option] = [it for it in serve.params if it.name == "drain_s"]
    assert isinstance(option.default, int)
    return option.default


def variables() -> set[str]:
    """Return the names of all variables that are settings."""
    return {
        str(field.validation_alias or f"TOLLGATE_{name.upper()}")
        for name, field in Settings.model_fields.items()
    }


def user_of_image() -> int:
    found = re.search(r"^USER (\d+):", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_the_template_is_too_long_inline_and_fits_a_bucket(
    any_stack: Stack, source: JsonObject
) -> None:
    packaged = len(json.dumps(source, default=str).encode())
    processed = len(json.dumps(any_stack.template).encode())
    assert packaged > INLINE_BYTES_MAX, "The examples may pass the template inline now."
    assert max(packaged, processed, TEMPLATE.stat().st_size) < BUCKET_BYTES_MAX
    assert len(any_stack.template["Resources"]) <= RESOURCES_MAX
    assert len(any_stack.parameters) <= PARAMETERS_MAX
    assert len(any_stack.outputs) <= OUTPUTS_MAX


def test_the_template_needs_the_capabilities_that_the_examples_give(any_stack: Stack) -> None:
    assert "Transform" in load_template()
    for properties in (
        *any_stack.properties("AWS::IAM::Role").values(),
        *any_stack.properties("AWS::IAM::ManagedPolicy").values(),
    ):
        # With a name of its own, CAPABILITY_NAMED_IAM would be needed.
        assert not {"RoleName", "ManagedPolicyName"} & properties.keys()


def test_terraform_creates_the_stack_from_the_bucket(source: JsonObject) -> None:
    text = (EXAMPLES / "terraform" / "main.tf").read_text()
    assert re.search(r"^  template_url += var\.template_url$", text, re.MULTILINE)
    assert "template_body" not in text
    stated = re.search(r"^  capabilities = (\[.*\])$", text, re.MULTILINE)
    assert stated is not None
    assert json.loads(stated[1]) == CAPABILITIES
    assert "prevent_destroy = true" in text
    outputs = set(re.findall(r'\.outputs\["(\w+)"\]', text))
    assert len(outputs) == 4
    assert outputs <= source["Outputs"].keys()
    defaults = re.search(r"^  default += \{(.*)\}$", text, re.MULTILINE)
    assert defaults is not None
    parameters = dict(re.findall(r'(\w+) = "([^"]*)"', defaults[1]))
    for name, value in parameters.items():
        assert source["Parameters"][name]["Default"] == value


def test_terraform_is_formatted() -> None:
    program = shutil.which("terraform")
    if program is None:
        pytest.skip("there is no terraform")
    folder = EXAMPLES / "terraform"
    ended = subprocess.run([program, "fmt", "-check", "-diff", folder], check=False)
    assert ended.returncode == 0


def test_cdk_nests_the_stack_from_the_bucket(
    source: JsonObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library itself, 2.275.0 for Python, made the same call when the example was written."""
    cdk = MagicMock(spec=ModuleType)
    cdk.App, cdk.Stack, cdk.CfnStack, cdk.CfnOutput = (MagicMock() for _ in range(4))
    cdk.RemovalPolicy = MagicMock()
    monkeypatch.setitem(sys.modules, "aws_cdk", cdk)
    monkeypatch.setenv("TEMPLATE_URL", "https://bucket.example/template.yaml")
    runpy.run_path(str(EXAMPLES / "cdk" / "app.py"))
    made = cdk.CfnStack.call_args.kwargs
    assert made["template_url"] == "https://bucket.example/template.yaml"
    assert made["parameters"].keys() <= source["Parameters"].keys()
    nested = cdk.CfnStack.return_value
    nested.apply_removal_policy.assert_called_once_with(cdk.RemovalPolicy.RETAIN)
    [output] = nested.get_att.call_args.args
    assert output.removeprefix("Outputs.") in source["Outputs"]
    assert json.loads((EXAMPLES / "cdk" / "cdk.json").read_text()) == {"app": "python3 app.py"}


_RECORDER: Final = """#!/bin/sh
for each; do printf '%s\\n' "$each"; done > "$RECORDED/$(basename "$0")"
while [ $# -gt 0 ]; do
    if [ "$1" = --output-template-file ]; then echo packaged > "$2"; fi
    shift
done
"""


def recorded(folder: Path, script: str, *arguments: str) -> tuple[str, dict[str, list[str]]]:
    """Run a script with programs that record their arguments: its output, and the arguments."""
    for name in ("sam", "aws"):
        (folder / name).write_text(_RECORDER)
        (folder / name).chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "RECORDED": str(folder / "calls")}
    (folder / "calls").mkdir()
    ended = subprocess.run(
        [EXAMPLES / script, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    calls = {it.name: it.read_text().splitlines() for it in (folder / "calls").iterdir()}
    return ended.stdout, calls


def test_the_packaged_template_goes_to_the_bucket_under_the_name_of_its_content(
    tmp_path: Path,
) -> None:
    printed, calls = recorded(tmp_path, "package.sh", "artefacts", "eu-west-1")
    place = re.fullmatch(
        r"https://artefacts\.s3\.eu-west-1\.amazonaws\.com/(tollgate/template-[0-9a-f]{16}\.yaml)\n",
        printed,
    )
    assert place is not None, printed
    assert calls["aws"][-1] == f"s3://artefacts/{place[1]}"
    options = dict(zip(calls["sam"][1::2], calls["sam"][2::2], strict=True))
    assert calls["sam"][0] == "package"
    assert options["--template-file"] == ".aws-sam/build/template.yaml"
    assert (options["--s3-bucket"], options["--region"]) == ("artefacts", "eu-west-1")


@pytest.mark.nightly
def test_sam_and_aws_package_the_template_into_the_bucket(tmp_path: Path) -> None:
    """The programs themselves run against an emulator of S3."""
    aws = shutil.which("aws")
    if aws is None:
        pytest.skip("there is no aws")
    template = tmp_path / "infra" / "template.yaml"
    template.parent.mkdir()
    shutil.copy(TEMPLATE, template)
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "chat.py").write_text("handler = None\n")
    with running_moto() as url:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL": url,
            "SAM": str(SAM),
            "SAM_CLI_TELEMETRY": "0",
            "TEMPLATE": str(template),
        }
        client = boto3.client(
            "s3",
            region_name="us-east-1",
            endpoint_url=url,
            aws_access_key_id="id",
            aws_secret_access_key="secret",
        )
        client.create_bucket(Bucket="artefacts")
        ended = subprocess.run(
            [EXAMPLES / "package.sh", "artefacts", "us-east-1"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        key = ended.stdout.strip().partition(".com/")[2]
        packaged = client.get_object(Bucket="artefacts", Key=key)["Body"].read()
        assert INLINE_BYTES_MAX < len(packaged) < BUCKET_BYTES_MAX
        functions = [
            it["Properties"]
            for it in yaml_parse(packaged.decode())["Resources"].values()
            if it["Type"] == "AWS::Serverless::Function"
        ]
        assert len(functions) == 8
        for function in functions:
            assert function["CodeUri"].startswith("s3://artefacts/tollgate/")
            place = function["CodeUri"].removeprefix("s3://artefacts/")
            client.head_object(Bucket="artefacts", Key=place)


def test_cloudformation_deploys_through_the_bucket(tmp_path: Path, source: JsonObject) -> None:
    arguments = ("AlarmEmail=a@example.com", "AllowedOrigins=https://a.example, https://b.example")
    _, calls = recorded(tmp_path, "cloudformation/deploy.sh", "artefacts", "eu-west-1", *arguments)
    call = calls["aws"]
    assert call[:2] == ["cloudformation", "deploy"]
    assert call[call.index("--s3-bucket") + 1] == "artefacts"
    assert "--template-body" not in call
    after = call.index("--capabilities") + 1
    assert call[after : after + 2] == CAPABILITIES
    assert call[after + 2 :] == ["--parameter-overrides", *arguments]
    assert {it.partition("=")[0] for it in arguments} <= source["Parameters"].keys()


def test_cloudformation_deploys_without_parameters(tmp_path: Path) -> None:
    _, calls = recorded(tmp_path, "cloudformation/deploy.sh", "artefacts", "eu-west-1")
    assert calls["aws"][-2:] == CAPABILITIES


def test_compose_runs_the_image_as_serve_needs_it() -> None:
    [(name, service)] = yaml.safe_load((EXAMPLES / "compose/compose.yaml").read_text())[
        "services"
    ].items()
    assert name == "tollgate"
    # Keys of the Compose specification (docs.docker.com/reference/compose-file/services).
    assert service.keys() == {
        *("image", "build", "env_file", "ports", "read_only", "tmpfs", "cap_drop"),
        *("security_opt", "restart", "stop_grace_period", "healthcheck"),
    }
    assert (EXAMPLES / "compose" / service["build"] / "Dockerfile").is_file()
    assert int(service["stop_grace_period"].removesuffix("s")) >= drain_s() + SETTLING_S
    test = service["healthcheck"]["test"]
    [path] = re.findall(r"http://localhost:8080(/[\w/]+)", test[-1])
    assert ("GET", path) in ACCESS
    compile(test[-1], "healthcheck", "exec")
    stated = (EXAMPLES / "compose/tollgate.env.example").read_text()
    names = [line.partition("=")[0] for line in stated.splitlines()]
    assert set(names) <= variables()
    assert {f"TOLLGATE_{it}_TABLE" for it in ("CORE", "LEDGER", "GENERATIONS")} <= set(names)
    assert not re.search(r"(KEY|ID)=.", stated)


def objects() -> dict[type[object], Any]:
    """Return the objects of the example by type."""
    loaded = yaml.safe_load_all((EXAMPLES / "kubernetes/gateway.yaml").read_text())
    found = [convert(each, KubernetesObject) for each in loaded]
    return {type(each): each for each in found}


def kustomization() -> Kustomization:
    loaded = yaml.safe_load((EXAMPLES / "kubernetes/kustomization.yaml").read_text())
    return convert(loaded, Kustomization)


def test_kubernetes_runs_the_image_as_serve_needs_it() -> None:
    deployment: Deployment = objects()[Deployment]
    pod = deployment.spec.template.spec
    [container] = pod.containers
    assert container.lifecycle is not None
    before_s = container.lifecycle.pre_stop.sleep.seconds
    assert pod.termination_grace_period_seconds >= before_s + drain_s() + SETTLING_S
    for probe, path in (
        (container.readiness_probe, "/v1/health/ready"),
        (container.liveness_probe, "/v1/health/live"),
    ):
        assert probe is not None
        assert (probe.http_get.path, probe.http_get.port) == (path, container.ports[0].name)
        assert ("GET", path) in ACCESS
    exposed = re.search(r"^EXPOSE (\d+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert exposed is not None
    assert container.ports[0].container_port == int(exposed[1])
    # One process has one event loop.
    assert container.resources.requests["cpu"] == "1"


def test_kubernetes_gives_no_pod_more_rights_than_the_image() -> None:
    found = objects()
    pods: list[PodSpec] = [
        found[Deployment].spec.template.spec,
        found[CronJob].spec.job_template.spec.template.spec,
    ]
    for pod in pods:
        assert pod.security_context.run_as_user == user_of_image()
        assert pod.security_context.run_as_non_root
        assert not pod.automount_service_account_token
        for container in pod.containers:
            security = container.security_context
            assert security.read_only_root_filesystem
            assert not security.allow_privilege_escalation
            assert security.capabilities.drop == ["ALL"]
            assert [it.name for it in pod.volumes] == [it.name for it in container.volume_mounts]


def test_kubernetes_connects_what_belongs_together() -> None:
    found = objects()
    deployment: Deployment = found[Deployment]
    service: Service = found[Service]
    labels = deployment.spec.template.metadata.labels
    assert service.spec.selector == deployment.spec.selector.match_labels == labels
    ports = {it.name for it in deployment.spec.template.spec.containers[0].ports}
    assert {it.target_port for it in service.spec.ports} <= ports
    [generator] = kustomization().config_map_generator
    [image] = kustomization().images
    cron: CronJob = found[CronJob]
    for pod in (deployment.spec.template.spec, cron.spec.job_template.spec.template.spec):
        [container] = pod.containers
        assert [it.config_map_ref.name for it in container.env_from] == [generator.name]
        assert container.image == image.name
    assert cron.spec.concurrency_policy == "Forbid"
    assert cron.spec.job_template.spec.template.spec.containers[0].command == [
        *("tollgate", "upkeep", "subjects")
    ]


def test_kubernetes_names_settings_and_outputs(source: JsonObject) -> None:
    [generator] = kustomization().config_map_generator
    values = dict(it.split("=", 1) for it in generator.literals)
    assert values.keys() <= variables()
    outputs = {it.removeprefix("output-") for it in values.values() if it.startswith("output-")}
    assert len(outputs) == 5
    assert outputs <= source["Outputs"].keys()


@pytest.mark.parametrize("misplaced", ["replica: 2", "templates: {}", "terminationGracePeriod: 5"])
def test_a_field_that_kubernetes_does_not_have_is_found(misplaced: str) -> None:
    text = (EXAMPLES / "kubernetes/gateway.yaml").read_text()
    [broken] = [
        each
        for each in yaml.safe_load_all(
            text.replace("  replicas: 2", f"  replicas: 2\n  {misplaced}")
        )
        if each["kind"] == "Deployment"
    ]
    with pytest.raises(ValidationError, match="unknown field"):
        convert(broken, KubernetesObject)


def test_kustomize_renders_the_base() -> None:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("there is no kubectl")
    rendered = subprocess.run(
        [program, "kustomize", EXAMPLES / "kubernetes"], capture_output=True, text=True, check=True
    ).stdout
    found: dict[str, Mapping[str, Any]] = {it["kind"]: it for it in yaml.safe_load_all(rendered)}
    assert len(found) == 6
    pod = found["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert pod["image"] == "registry.example.com/tollgate:1.0.0"
    named = pod["envFrom"][0]["configMapRef"]["name"]
    assert named == found["ConfigMap"]["metadata"]["name"] != "tollgate"
    assert {it["metadata"]["namespace"] for it in found.values()} == {"tollgate"}
