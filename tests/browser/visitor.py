"""What a person does in the console."""

from dataclasses import dataclass, field

from playwright.sync_api import ConsoleMessage, Error, Locator, Page

from tests.local_server import LocalServer

# Chromium logs each answer of an error; the console shows these itself.
_REFUSED_BY_API = "Failed to load resource: the server responded with a status of"


@dataclass
class Visitor:
    """A page, and what went wrong in it."""

    page: Page
    server: LocalServer
    faults: list[str] = field(default_factory=list)
    _visits: int = 0

    def __post_init__(self) -> None:
        self.page.on("pageerror", self._note_error)
        self.page.on("console", self._note_message)

    @property
    def host(self) -> str:
        """The server's address with the path under which API Gateway has it, too."""
        return self.server.base_url.removesuffix("/v1")

    def sign_in(self, key: str | None = None) -> None:
        self.page.goto(f"{self.host}/console/")
        self.page.get_by_label("Key", exact=True).fill(key or self.server.management_key)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        self.wait()

    def sign_in_by_issuer(self, subject: str) -> None:
        self.page.goto(f"{self.host}/console/")
        self.press("Sign in with your organisation")
        name = self.page.locator("input[name=sub]")
        name.fill(subject)
        name.press("Enter")
        self.wait()
        # Pages of the issuer load what is not here.
        self.faults.clear()

    def go(self, view: str) -> None:
        """Go to another view without loading the page again."""
        self._visits += 1
        # Otherwise nothing happens where the address is the same.
        query = f"{'&' if '?' in view else '?'}visit={self._visits}"
        self.page.locator("h1").evaluate("it => it.setAttribute('data-left', '')")
        self.page.evaluate("address => { location.hash = address; }", f"#/{view}{query}")
        self.page.locator("h1:not([data-left]) + .view:not([aria-busy])").wait_for()

    def open(self, view: str) -> None:
        """Open a view by its address."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.host}/console/#/{view}")
        self.wait()

    def wait(self) -> None:
        self.page.locator(".view:not([aria-busy])").wait_for()

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def fill(self, **values: str) -> None:
        """Fill in the fields of the open dialog, or of the page, by their names."""
        dialog = self.page.locator("dialog[open]")
        place: Locator | Page = dialog if dialog.count() else self.page
        for name, value in values.items():
            control = place.locator(f"[name={name}]")
            if control.evaluate("it => it.tagName") == "SELECT":
                control.select_option(value)
            else:
                control.fill(value)

    @property
    def text(self) -> str:
        return self.page.locator("main").inner_text()

    def _note_error(self, error: Error) -> None:
        self.faults.append(str(error))

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and _REFUSED_BY_API not in message.text:
            self.faults.append(message.text)
