"""Wires the spans of generations to a collector."""

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.secret import SecretReference
from tollgate.engine.gateway import Journal
from tollgate.observability.collector import OtlpCollector
from tollgate.observability.otlp import SpanJournal
from tollgate.settings import Settings, environment_variable
from tollgate.stores.aws.secrets import AwsSecretStore
from tollgate.wiring.aws import aws_json


def wire_collector(
    settings: Settings, clock: Clock, journal: Journal
) -> tuple[OtlpCollector, SpanJournal]:
    """Return the collector that the settings name, and a journal that sends spans to it."""
    client = aws_json(settings, "secretsmanager", settings.secretsmanager_endpoint_url, clock)
    secrets = AwsSecretStore(client, environment_variable, clock)
    name = settings.otlp_headers_secret
    headers = SecretReference(secret=name) if name else None
    collector = OtlpCollector(settings.otlp_endpoint_url or "", secrets, headers)
    return collector, SpanJournal(journal, collector, clock, IdSource(clock))
