"""A real browser, headless, by the WebDriver protocol; tests that need it are skipped without."""

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--disable-dev-shm-usage", "--force-device-scale-factor=1"),
)
needs_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not on this machine"
)


@dataclass(frozen=True)
class Browser:
    """One window."""

    client: httpx.Client
    session: str

    def do(self, path: str, **body: Any) -> Any:
        response = self.client.post(f"/session/{self.session}/{path}", json=body)
        assert response.is_success, response.text
        return response.json()["value"]

    def get(self, path: str) -> Any:
        return self.client.get(f"/session/{self.session}/{path}").json()["value"]

    def resize(self, width: int, height: int) -> None:
        self.do(
            "goog/cdp/execute",
            cmd="Emulation.setDeviceMetricsOverride",
            params={"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True},
        )

    def open(self, url: str) -> None:
        self.do("url", url=url)

    def run(self, script: str) -> Any:
        return self.do("execute/sync", script=f"return {script}", args=[])

    def find(self, css: str) -> str:
        """The first such element, once there is one."""
        (element,) = self.do("element", using="css selector", value=css).values()
        return str(element)

    def type(self, css: str, text: str) -> None:
        self.do(f"element/{self.find(css)}/value", text=text)

    def click(self, css: str) -> None:
        self.do(f"element/{self.find(css)}/click")

    def screenshot(self) -> bytes:
        return base64.b64decode(self.get("screenshot"))


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own."""
    assert CHROMIUM
    assert DRIVER
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        known = {"PATH": os.environ["PATH"], "HOME": profile}
        driver = subprocess.Popen(
            [DRIVER, f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=known,
        )
        url = f"http://127.0.0.1:{port}"
        try:
            with httpx.Client(base_url=url, timeout=60, trust_env=False, verify=False) as client:
                await_driver(client)
                options = {"binary": CHROMIUM, "args": [*ARGUMENTS, f"--user-data-dir={profile}/c"]}
                wanted = {
                    "alwaysMatch": {"goog:chromeOptions": options, "timeouts": {"implicit": 20_000}}
                }
                made = client.post("/session", json={"capabilities": wanted}).json()["value"]
                try:
                    yield Browser(client, made["sessionId"])
                finally:
                    client.delete(f"/session/{made['sessionId']}")
        finally:
            driver.terminate()
            driver.wait(30)


def await_driver(client: httpx.Client) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if client.get("/status").json()["value"]["ready"]:
                return
        time.sleep(0.02)
    raise AssertionError("chromedriver did not start")
