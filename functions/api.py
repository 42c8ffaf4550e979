"""Lambda entry point of the buffered API: Lambda's own runtime client calls `handler`."""

from mangum import Mangum
from mangum.adapter import DEFAULT_TEXT_MIME_TYPES

from tollgate.core.clock import SystemClock
from tollgate.core.files.media_types import ASCII_PDF
from tollgate.observability.log import configure_logging
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings
from tollgate.web.api_app import api_app
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.batch_stores import wire_batch_queue
from tollgate.wiring.catalog import wire_catalog_follower
from tollgate.wiring.files import wire_files
from tollgate.wiring.observation import wire_observation, wire_web_limits
from tollgate.wiring.services import wire_services
from tollgate.wiring.stores import wire_stores

configure_logging()
_settings = Settings()
_clock = SystemClock()
_stores = wire_stores(_settings, _clock)
_journal = wire_observation(_settings, _clock).journal
_services = wire_services(
    _stores,
    wire_administration(_settings, _stores, _clock),
    wire_catalog_follower(
        _settings,
        _stores.publications,
        lambda catalog: catalog,
        as_candidate=Catalog.as_candidate,
        clock=_clock,
        journal=_journal,
    ),
    files=wire_files(_settings, _stores, _clock),
    batch_queue=wire_batch_queue(_settings, _clock),
    clock=_clock,
    journal=_journal,
    job_region=_settings.job_region,
)
_openapi = _settings.openapi_file.read_bytes() if _settings.openapi_file else None
handler = Mangum(
    api_app(
        _services,
        wire_web_limits(_settings),
        openapi=_openapi,
        by_topic=_openapi is not None,
    ),
    lifespan="off",
    # Bodies of other types are sent as base64, which API Gateway decodes only if the `Accept`
    # header matches BinaryMediaTypes of the template.
    text_mime_types=[
        *DEFAULT_TEXT_MIME_TYPES,
        "application/scim+json",
        "image/svg+xml",
        ASCII_PDF,
    ],
)
