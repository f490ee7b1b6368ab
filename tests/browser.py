"""A headless Chromium, driven through chromedriver's own protocol: HTTP and JSON."""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

REQUIRED = "PROXLEARN_BROWSER"
"""Set to `required` where a missing browser is an error."""


def programs():
    """Paths of Chromium and its driver; the test is skipped, with the reason, without them."""
    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in found:
        reason = "no chromium and chromedriver: install the packages chromium, chromium-driver"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@contextmanager
def browser(width=1280, height=900):
    """A `Browser` with a window of that size, closed at the end."""
    chromium, driver = programs()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL)
    try:
        opened = Browser(f"http://127.0.0.1:{port}", chromium, width, height)
        try:
            yield opened
        finally:
            opened.close()
    finally:
        process.terminate()
        process.wait(timeout=20)


class Browser:
    def __init__(self, address, chromium, width, height):
        self.base = address
        self._wait_for_driver()
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        arguments += [f"--window-size={width},{height}", "--hide-scrollbars"]
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": chromium, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/session/{session['sessionId']}"

    def _wait_for_driver(self):
        for _ in range(200):
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except urllib.error.URLError:
                pass
            time.sleep(0.05)
        raise TimeoutError("chromedriver does not answer")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, path):
        self._call("POST", "/url", {"url": path.resolve().as_uri()})

    def run(self, script, *arguments):
        """What the body of a JavaScript function returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def log(self):
        """Messages of the console since the last call."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def devtools(self, command, **parameters):
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height, phone=False):
        """The size of the page itself; a phone also scales as phones do."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        self.run("return new Promise((done) => setTimeout(() => requestAnimationFrame(done), 50))")

    def prefer(self, scheme):
        """What the system asks for: light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def click(self, selector):
        """Press the mouse in the middle of the first element that matches."""
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        (identifier,) = found.values()
        self._call("POST", f"/element/{identifier}/click", {})

    def type(self, selector, keys):
        found = self._call("POST", "/element", {"using": "css selector", "value": selector})
        (identifier,) = found.values()
        self._call("POST", f"/element/{identifier}/value", {"text": keys})

    def picture(self, path, whole=False):
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self._call("DELETE", "")
