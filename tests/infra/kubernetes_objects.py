"""The fields of Kubernetes' objects that the example has; an unknown or misplaced one is an error.

Names and types are those of the API reference of Kubernetes 1.34
(kubernetes.io/docs/reference/kubernetes-api, 2026-11-27). A complete schema has 22 MB.
"""

from typing import Literal

from msgspec import Struct


class _Object(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True, frozen=True):
    """An object without unknown fields."""


class Metadata(_Object):
    name: str = ""
    labels: dict[str, str] = {}


class HttpGet(_Object):
    path: str
    port: str


class Probe(_Object):
    http_get: HttpGet
    period_seconds: int
    failure_threshold: int = 3


class Sleep(_Object):
    seconds: int


class Handler(_Object):
    sleep: Sleep


class Lifecycle(_Object):
    pre_stop: Handler


class Resources(_Object):
    requests: dict[str, str]
    limits: dict[str, str]


class Capabilities(_Object):
    drop: list[str]


class ContainerSecurity(_Object):
    allow_privilege_escalation: bool
    read_only_root_filesystem: bool
    capabilities: Capabilities


class Mount(_Object):
    name: str
    mount_path: str


class ConfigMapRef(_Object):
    name: str


class EnvFrom(_Object):
    config_map_ref: ConfigMapRef


class ContainerPort(_Object):
    name: str
    container_port: int


class Container(_Object):
    name: str
    image: str
    env_from: list[EnvFrom]
    resources: Resources
    security_context: ContainerSecurity
    volume_mounts: list[Mount]
    command: list[str] = []
    ports: list[ContainerPort] = []
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    lifecycle: Lifecycle | None = None


class Seccomp(_Object):
    type: Literal["RuntimeDefault"]


class PodSecurity(_Object):
    run_as_non_root: bool
    run_as_user: int
    seccomp_profile: Seccomp


class Volume(_Object):
    name: str
    empty_dir: dict[str, str]


class PodSpec(_Object):
    service_account_name: str
    automount_service_account_token: bool
    security_context: PodSecurity
    containers: list[Container]
    volumes: list[Volume]
    restart_policy: Literal["Always", "OnFailure", "Never"] = "Always"
    termination_grace_period_seconds: int = 30


class PodTemplate(_Object):
    spec: PodSpec
    metadata: Metadata = Metadata()


class Selector(_Object):
    match_labels: dict[str, str]


class RollingUpdate(_Object):
    max_unavailable: int


class Strategy(_Object):
    rolling_update: RollingUpdate


class DeploymentSpec(_Object):
    replicas: int
    selector: Selector
    strategy: Strategy
    template: PodTemplate


class Deployment(_Object, tag_field="kind"):
    api_version: Literal["apps/v1"]
    metadata: Metadata
    spec: DeploymentSpec


class ServicePort(_Object):
    name: str
    port: int
    target_port: str


class ServiceSpec(_Object):
    selector: dict[str, str]
    ports: list[ServicePort]


class Service(_Object, tag_field="kind"):
    api_version: Literal["v1"]
    metadata: Metadata
    spec: ServiceSpec


class ServiceAccount(_Object, tag_field="kind"):
    api_version: Literal["v1"]
    metadata: Metadata


class DisruptionSpec(_Object):
    max_unavailable: int
    selector: Selector


class PodDisruptionBudget(_Object, tag_field="kind"):
    api_version: Literal["policy/v1"]
    metadata: Metadata
    spec: DisruptionSpec


class JobSpec(_Object):
    template: PodTemplate


class JobTemplate(_Object):
    spec: JobSpec


class CronJobSpec(_Object):
    schedule: str
    concurrency_policy: Literal["Allow", "Forbid", "Replace"]
    job_template: JobTemplate


class CronJob(_Object, tag_field="kind"):
    api_version: Literal["batch/v1"]
    metadata: Metadata
    spec: CronJobSpec


KubernetesObject = Deployment | Service | ServiceAccount | PodDisruptionBudget | CronJob


class NameAndLabels(_Object):
    pairs: dict[str, str]


class NewImage(_Object):
    name: str
    new_name: str
    new_tag: str


class Generator(_Object):
    name: str
    literals: list[str]


class Kustomization(_Object, tag_field="kind"):
    api_version: Literal["kustomize.config.k8s.io/v1beta1"]
    namespace: str
    resources: list[str]
    labels: list[NameAndLabels]
    images: list[NewImage]
    config_map_generator: list[Generator]
