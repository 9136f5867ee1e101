"""What it costs a browser to open pages of `bhemu report`, in turns on the same machine.

    python tools/page_opening.py [--rounds N] PAGE.html...

For each page: milliseconds until its tables are there (`data-ready`), and seconds that the renderer's process has spent
by then; the same when all its sections are drawn, one after the other as a reader scrolls through; and milliseconds of
a drawing of both timelines, of all and of a hundredth of the time. Headless Chromium is spoken to through a pipe.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

READY: Final = "document.body && (document.body.dataset.ready || document.body.dataset.failed) || ''"
SCROLL: Final = """(async () => {
  for (const section of document.querySelectorAll("section")) {
    section.scrollIntoView();
    while (["work", "time", "grid", "noc", "links", "pictures"].includes(section.id) && !section.dataset.drawn)
      await new Promise((done) => setTimeout(done, 5));
  }
})()"""
DRAWINGS: Final = """(() => {
  const [first, last] = whole, times = [];
  for (const part of [1, 0.01]) {
    range.from = part < 1 ? first + 0.8 * (last - first) : first;
    range.to = range.from + part * (last - first);
    const begin = performance.now();
    for (let i = 0; i < 10; i++) { chipTime.draw(); tileTime.draw(); }
    times.push((performance.now() - begin) / 10);
  }
  return times;
})()"""


class Browser:
    """Headless Chromium with one page."""

    def __init__(self, program: str, profile: str) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            "--window-size=1280,1000",
        ]
        # --remote-debugging-pipe has its ends at descriptors 3 and 4
        joined = ["sh", "-c", f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}', program]
        self._process = subprocess.Popen(
            [*joined, *options, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._count, self._rest, self._session = 0, b"", ""
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = str(self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"])

    def ask(self, method: str, *, of_browser: bool = False, **parameters: Any) -> Any:
        """Call a method of the DevTools protocol; returns its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session and not of_browser:
            message["sessionId"] = self._session
        content = json.dumps(message).encode() + b"\0"
        while content:
            content = content[os.write(self._write, content) :]
        while True:
            while b"\0" not in self._rest:
                self._rest += os.read(self._read, 1 << 20) or sys.exit("the browser has ended")
            text, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._count:
                return answer.get("result", {})

    def value(self, script: str) -> Any:
        """What an expression gives in the page."""
        told = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        return told.get("result", {}).get("value")

    def renderer_seconds(self) -> float:
        """Processor time of the renderer."""
        processes = self.ask("SystemInfo.getProcessInfo", of_browser=True)["processInfo"]
        return sum(float(process["cpuTime"]) for process in processes if process["type"] == "renderer")

    def close(self) -> None:
        """End it."""
        self.ask("Browser.close", of_browser=True)
        self._process.wait()


def opened(program: str, page: Path) -> list[float]:
    """What the module says, of one opening."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        before = browser.renderer_seconds()
        browser.ask("Page.navigate", url=page.resolve().as_uri())
        while not (ready := browser.value(READY)):
            time.sleep(0.05)
        if not str(ready).isdigit():
            sys.exit(f"{page}: {ready}")
        found = [float(ready), browser.renderer_seconds() - before]
        browser.value(SCROLL)
        found += [browser.renderer_seconds() - before, *browser.value(DRAWINGS)]
        browser.close()
        return found


def main() -> None:
    """Measure, and print a row for each page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("pages", nargs="+", type=Path)
    given = parser.parse_args()
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        sys.exit("there is no Chromium")
    found: dict[Path, list[list[float]]] = {}
    for _ in range(given.rounds):
        for page in given.pages:
            found.setdefault(page, []).append(opened(program, page))
    for page, rounds in found.items():
        ready, first, scrolled, whole, part = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(
            f"{page.name}: ready after {ready:,.0f} ms, renderer {first:.2f} s; scrolled through {scrolled:.2f} s; "
            f"a drawing of all {whole:.0f} ms, of a hundredth {part:.0f} ms"
        )
    print(f"load average at the end: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
