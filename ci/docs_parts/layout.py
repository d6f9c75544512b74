"""Measures in Chromium that no page of the site is wider than the window.

A page of this server opens the site's pages in a frame, one after the other, and sends back the
width of each and the elements that stick out. Only Chromium is needed, no driver.
"""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

WIDTHS = (1280, 390)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip

_HARNESS = """<!doctype html><body style="margin:0"><script>
const pages = %s, widths = %s, found = [];
function outside(document, width) {  // the innermost element that sticks out
  let worst = "";
  for (const e of document.body.querySelectorAll("*"))
    if (e.getBoundingClientRect().right > width + 1 && e.scrollWidth >= e.clientWidth)
      worst = e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 40);
  return worst;
}
async function look(page, width) {
  const frame = document.createElement("iframe");
  frame.style = `width:${width}px;height:900px;border:0`;
  frame.src = page;
  document.body.append(frame);
  await new Promise(done => frame.onload = done);
  const inside = frame.contentDocument, wide = inside.documentElement.scrollWidth;
  const images = [...inside.querySelectorAll("article img")].filter(
    image => !image.naturalWidth || image.getBoundingClientRect().width > width);
  if (wide > width) found.push([page, width, `${wide} pixels: ${outside(inside, width)}`]);
  for (const image of images) found.push([page, width, `picture ${image.src}`]);
  frame.remove();
}
(async () => {
  for (const width of widths) for (const page of pages) await look(page, width);
  await fetch("/found", {method: "POST", body: JSON.stringify(found)});
})();
</script>"""


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Nothing: a frame that is removed breaks off its downloads."""


def browser() -> str | None:
    """The Chromium that is installed, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def measure(out: Path, pages: list[str], timeout: float = 300.0) -> list[list[object]]:
    """Page, width and reason for each page below `out` that is too wide or lacks a picture.

    Raises:
        TimeoutError: the browser has not answered in time.
    """
    answer: list[list[list[object]]] = []
    done = threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/harness":
                return super().do_GET()
            text = (_HARNESS % (json.dumps(pages), json.dumps(WIDTHS))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return None

        def do_POST(self) -> None:
            answer.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()
            done.set()

        def log_message(self, *_: object) -> None:
            """Nothing: the log would be a line for each file."""

    command = browser()
    assert command is not None
    handler = functools.partial(Handler, directory=str(out))
    with (
        _Server(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/harness"
        arguments = [command, *FLAGS, f"--user-data-dir={profile}", "--window-size=1400,1000"]
        process = subprocess.Popen(
            [*arguments, "--remote-debugging-port=0", url],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            if not done.wait(timeout):
                raise TimeoutError(f"{command} has not measured {len(pages)} pages in {timeout} s")
        finally:
            process.terminate()
            process.wait()
            server.shutdown()
    return answer[0]


def pages_of(out: Path, version: str) -> list[str]:
    """The pages to look at: all but those of names, of which each 25th."""
    every = sorted(str(p.relative_to(out)) for p in (out / version).rglob("*.html"))
    names = [p for p in every if "/api/names/" in p]
    return [p for p in every if "/api/names/" not in p] + names[::25]


def check(out: Path, version: str) -> int:
    """Print what is too wide; 1 if anything is, 2 without a browser."""
    if browser() is None:
        print(f"--check-layout needs one of {', '.join(BROWSERS)}", file=sys.stderr)
        return 2
    pages = pages_of(out, version)
    found = measure(out, [f"/{p}" for p in pages])
    for page, width, reason in found:
        print(f"{page} at {width} pixels: {reason}", file=sys.stderr)
    print(f"{len(pages)} pages at {' and '.join(map(str, WIDTHS))} pixels: {len(found)} to mend")
    return int(bool(found))
