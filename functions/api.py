"""The buffered function: Lambda's own runtime client calls `handler`."""

from mangum import Mangum

from tollgate.core.clock import SystemClock
from tollgate.observability.log import LogJournal, configure_logging
from tollgate.settings import Settings
from tollgate.web.api_app import api_app
from tollgate.wiring import bundled_catalog, web_limits, wire_services, wire_stores

configure_logging()
_settings = Settings()
_clock = SystemClock()
_services = wire_services(
    wire_stores(_settings, _clock),
    bundled_catalog(_settings),
    clock=_clock,
    journal=LogJournal(),
)
handler = Mangum(api_app(_services, web_limits(_settings)), lifespan="off")
