"""Lambda entry point of sign-in: Lambda's own runtime client calls `handler`.

Without a sign-in file next to this module, every route answers that sign-in is not configured.
"""

from pathlib import Path

from mangum import Mangum

from tollgate.core.clock import SystemClock
from tollgate.observability.log import configure_logging
from tollgate.settings import Settings
from tollgate.web.sign_in.sign_in_app import login_app
from tollgate.wiring.administration import wire_administration
from tollgate.wiring.observation import wire_observation, wire_web_limits
from tollgate.wiring.sign_in import wire_login_services
from tollgate.wiring.stores import wire_stores

configure_logging()
_settings = Settings()
_built = Path(__file__).with_name("sign-in.json")
if _settings.sign_in_file is None and _built.exists():
    # The build copies the reviewed sign-in file to this path.
    _settings = _settings.model_copy(update={"sign_in_file": _built})
_clock = SystemClock()
_stores = wire_stores(_settings, _clock)
_services = wire_login_services(
    _settings,
    _stores,
    wire_administration(_settings, _stores, _clock),
    clock=_clock,
    journal=wire_observation(_settings, _clock).journal,
)
handler = Mangum(login_app(_services, wire_web_limits(_settings)), lifespan="off")
