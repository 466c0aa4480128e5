"""Drive this machine's Firefox and WebKit with the commands of W3C WebDriver, headless.

Both start with new profiles and end with their stack. No Python package is needed.
"""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

__all__ = ["BROWSERS", "Browser", "Page", "wait"]

PATIENCE = 30.0  # seconds that a step may take on a busy machine
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element in the W3C protocol
#: Requests to other hosts go to a proxy that does not exist; what a page prints goes to standard output.
PREFERENCES = {
    "marionette.port": 0,
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "devtools.console.stdout.content": True,
}
#: The last visible element of a selector with this label or text; "" matches any text.
FIND = """const [selector, text] = arguments;
return [...document.querySelectorAll(selector)].filter(it => it.checkVisibility({visibilityProperty: true}) &&
  (!text || [it.getAttribute("aria-label"), it.textContent.trim()].includes(text))).pop() ?? null"""
PLACES = ("lib/*", "lib*", "libexec")  # where systems install the browser of WebKit's driver
LOADING = ("Navigate", "Refresh")
#: Command -> its path in WebDriver over HTTP, below that of the session.
PATHS = {
    "Navigate": "/url",
    "Refresh": "/refresh",
    "ExecuteScript": "/execute/sync",
    "ElementClick": "/element/{id}/click",
    "ElementSendKeys": "/element/{id}/value",
    "SetWindowRect": "/window/rect",
    "TakeScreenshot": "/screenshot",
}


class Browser(Protocol):
    """A session in a browser. Commands have Marionette's names and the fields of W3C WebDriver."""

    name: str
    version: str

    def command(self, name: str, **fields: Any) -> Any: ...

    def resize(self, width: int, height: int) -> None: ...

    def console(self) -> list[str]: ...


class Firefox:
    """Firefox through Marionette, the protocol below geckodriver: JSON with a length prefix, over a socket."""

    ERRORS = """return Services.console.getMessageArray().filter(it => it instanceof Ci.nsIScriptError &&
      !(it.flags & it.warningFlag) && it.sourceName.startsWith("http://127.0.0.1")).map(it => it.errorMessage)"""
    SIZE = """for (const [name, size] of [["width", arguments[0]], ["height", arguments[1]]])
      for (const limit of ["min-", "max-", ""]) gBrowser.selectedBrowser.style.setProperty(limit + name, size + "px")"""

    def __init__(self, program: str, folder: Path, stack: ExitStack) -> None:
        self.name, self._output, self._number = "Firefox", folder / "output", 0
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        (folder / "user.js").write_text("\n".join(lines), encoding="utf-8")
        options = ["--headless", "--no-remote", "--marionette", "--remote-allow-system-access"]
        output = stack.enter_context(self._output.open("wb"))
        environment = {**os.environ, "HOME": str(folder)}
        start(stack, [program, *options, "--profile", str(folder)], env=environment, stdout=output, stderr=output)
        port = wait((folder / "MarionetteActivePort").read_text, "Firefox to start")
        self._socket = stack.enter_context(socket.create_connection(("127.0.0.1", int(port)), PATIENCE * 2))
        self._stream = stack.enter_context(self._socket.makefile("rb"))
        self._read()
        self.version = self.command("NewSession", capabilities={})["capabilities"]["browserVersion"]

    def _read(self) -> Any:
        length = b""
        while (digit := self._stream.read(1)) != b":":
            length += digit
        return json.loads(self._stream.read(int(length)))

    def command(self, name: str, **fields: Any) -> Any:
        self._number += 1
        body = json.dumps([0, self._number, name if ":" in name else f"WebDriver:{name}", fields]).encode()
        self._socket.sendall(f"{len(body)}:".encode() + body)
        _, _, error, result = self._read()
        if error:
            raise RuntimeError(f"{name}: {error['message']}")
        return result["value"] if isinstance(result, dict) and result.keys() == {"value"} else result

    def _in_the_browser(self, script: str, *arguments: Any) -> Any:
        """Run a script in the browser's own window instead of the page."""
        self.command("Marionette:SetContext", value="chrome")
        try:
            return self.command("ExecuteScript", script=script, args=arguments)
        finally:
            self.command("Marionette:SetContext", value="content")

    def resize(self, width: int, height: int) -> None:
        """Resize the page inside the window, because no window is narrower than 500 px."""
        self.command("SetWindowRect", width=max(width, 500), height=height + 100)
        self._in_the_browser(self.SIZE, width, height)
        inner = "return innerWidth === arguments[0] && innerHeight === arguments[1]"
        wait(lambda: self.command("ExecuteScript", script=inner, args=[width, height]), "the new size")

    def console(self) -> list[str]:
        lines = self._output.read_text(encoding="utf-8", errors="replace").splitlines()
        # RSLoader is Firefox itself, which cannot reach its own server.
        printed = [
            line for line in lines if line.startswith(("console.error", "console.warn")) and "RSLoader" not in line
        ]
        return [*printed, *self._in_the_browser(self.ERRORS)]


class WebKit:
    """WebKitGTK's small browser through its driver: W3C WebDriver over HTTP, on a virtual display."""

    COLLECT = """if (window.collected) return;
      window.collected = [];
      const note = (...words) => window.collected.push(words.map(String).join(" "));
      for (const name of ["error", "warn"]) console[name] = note;
      addEventListener("error", event => note(event.message));
      addEventListener("unhandledrejection", event => note(event.reason));
      addEventListener("securitypolicyviolation", event => note("blocked:", event.blockedURI))"""

    def __init__(self, program: str, folder: Path, stack: ExitStack) -> None:
        self.name, self._lines = "WebKitGTK", list[str]()
        reading, writing = os.pipe()
        xvfb = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1600x1200x24", "-nolisten", "tcp"]
        start(stack, xvfb, pass_fds=[writing], stderr=subprocess.DEVNULL)
        os.close(writing)
        with os.fdopen(reading) as display:
            environment = {**os.environ, "HOME": str(folder), "DISPLAY": f":{display.readline().strip()}"}
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        start(stack, [program, f"--port={port}", "--host=127.0.0.1"], env=environment)
        self._address = f"http://127.0.0.1:{port}"
        wait(lambda: self._ask("GET", "/status"), "WebKit to start")
        options = {"binary": self.browser(), "args": ["--automation"]}
        capabilities = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        session = self._ask("POST", "/session", {"capabilities": capabilities})
        self._address += f"/session/{session['sessionId']}"
        stack.callback(self._ask, "DELETE", "")
        self.version = session["capabilities"]["browserVersion"]

    @staticmethod
    def browser() -> str | None:
        """Return the path of the driver's browser."""
        return next((str(path) for place in PLACES for path in Path("/usr").glob(f"{place}/webkit*/MiniBrowser")), None)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self._address + path, data, {"content-type": "application/json"}, method=method)
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=PATIENCE * 2) as response:
                return json.load(response)["value"]
        except HTTPError as error:
            raise RuntimeError(f"{path}: {json.load(error)['value']['message']}") from None

    def command(self, name: str, **fields: Any) -> Any:
        if name in LOADING:
            self.console()
        path = PATHS[name].format(**fields)
        result = self._ask("GET", path) if name == "TakeScreenshot" else self._ask("POST", path, fields)
        if name in LOADING:
            self.command("ExecuteScript", script=self.COLLECT, args=[])
        return result

    def resize(self, width: int, height: int) -> None:
        """Resize the window; its toolbar keeps it at least about 450 px wide."""
        self.command("SetWindowRect", x=0, y=0, width=width, height=height + 38)

    def console(self) -> list[str]:
        """Return the errors since the first page was loaded; the driver cannot report errors during loading."""
        self._lines += self.command("ExecuteScript", script="return window.collected?.splice(0) ?? []", args=[])
        return self._lines


def start(stack: ExitStack, command: list[str], **options: Any) -> None:
    """Start a program that ends with this stack."""
    process = subprocess.Popen(command, **options)
    stack.callback(process.wait, PATIENCE)
    stack.callback(process.terminate)


def wait(look: Callable[[], Any], what: str) -> Any:
    """Wait until `look` finds something, and return it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if result := look():
                return result
        except (FileNotFoundError, URLError):
            pass
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


@dataclass
class Page:
    """What people do with the page in a browser. Every action waits until it is possible."""

    browser: Browser

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.command("ExecuteScript", script=script, args=arguments)

    def find(self, selector: str, text: str = "") -> str:
        """Wait for a visible element and return its id in the protocol."""
        element = wait(lambda: self.run(FIND, selector, text), f"{selector} {text}")
        return str(element[ELEMENT])

    def until(self, condition: str, *arguments: Any) -> Any:
        """Wait until an expression is true in the page."""
        return wait(lambda: self.run(f"return {condition}", *arguments), condition)

    def click(self, selector: str, text: str = "") -> None:
        self._act(selector, text, "ElementClick")

    def type(self, selector: str, text: str) -> None:
        self._act(selector, "", "ElementSendKeys", text=text)

    def _act(self, selector: str, name: str, command: str, **fields: Any) -> None:
        """Act on an element as soon as that is possible: a moving drawer may cover it."""

        def done() -> bool:
            try:
                self.browser.command(command, id=self.find(selector, name), **fields)
            except RuntimeError:
                return False
            return True

        wait(done, f"{command} at {selector} {name}")

    def go(self, address: str) -> None:
        self.browser.command("Navigate", url=address)


def find_firefox() -> str | None:
    """Return the path of Firefox."""
    return next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)


def find_webkit() -> str | None:
    """Return the path of WebKit's driver, if its browser and Xvfb are installed too."""
    return shutil.which("WebKitWebDriver") if WebKit.browser() and shutil.which("Xvfb") else None


#: Each browser: a function that finds it, the class that drives it, and how to install it.
BROWSERS: dict[str, tuple[Callable[[], str | None], Callable[[str, Path, ExitStack], Browser], str]] = {
    "firefox": (find_firefox, Firefox, "apt install firefox-esr"),
    "webkit": (find_webkit, WebKit, "apt install webkit2gtk-driver xvfb"),
}
