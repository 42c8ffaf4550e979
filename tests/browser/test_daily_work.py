"""What people do in the console every day: look where requests went, and try another."""

from tests.browser.test_views import THEMES, violations
from tests.browser.visitor import Visitor


def test_c3_a_provider_without_a_key_does_not_look_ready(visitor: Visitor, axe: str) -> None:
    visitor.sign_in()
    visitor.go("models?id=fast")
    states = visitor.page.get_by_role("table", name="Endpoints of openai/gpt-oss-120b")
    states.get_by_text("no key").first.wait_for()
    assert "in service" not in visitor.text
    visitor.go("routing?model=fast")
    visitor.page.get_by_text("No endpoint has a usable key").wait_for()
    for theme in THEMES:
        visitor.page.emulate_media(color_scheme=theme)
        assert violations(visitor, axe) == []
    visitor.go("models?id=test/echo")
    visitor.page.get_by_text("in service").wait_for()
