"""A headless Chromium for tests, through its debugging pipe, with Python's standard library alone."""

import base64
import collections
import json
import os
import select
import shutil
import subprocess
import time

PIXELS_MAX = 16000  # of a picture's height

# Texts without enough contrast, as a list of sentences.
CONTRAST = """(() => {
  const wrong = [];
  const parse = c => { const n = c.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const light = c => { const l = c.slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor);
    if (c[3] > 0) return c; } return [255, 255, 255, 1]; };
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || ['STYLE', 'TITLE', 'title', 'desc'].includes(e.tagName)) continue;
    const style = getComputedStyle(e), svg = e.closest('svg');
    const ink = light(parse(svg ? style.fill : style.color));
    const paper = light(behind(svg ? svg.parentElement : e));
    if (svg && e.classList.contains('in-block')) continue; // stands on its block, not on the page
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    if (ratio < 4.5) wrong.push(`"${e.textContent.trim().slice(0, 30)}" has contrast ${ratio.toFixed(2)}`);
  }
  return [...new Set(wrong)].slice(0, 8);
})()"""


def find_chromium():
    """The path of a Chromium, or None."""
    names = ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Chromium:
    """One page of one browser, over --remote-debugging-pipe: messages end with a zero byte."""

    def __init__(self, program, home):
        to_browser, self.output = os.pipe()
        self.input, from_browser = os.pipe()

        def wire():
            # The browser reads on 3 and writes on 4, whatever numbers the pipes have here.
            first, second = os.dup(to_browser), os.dup(from_browser)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", f"--user-data-dir={home}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.n_sent = 0
        self.pending = b""
        self.session = None
        self.heard = collections.deque(maxlen=10000)  # events, oldest first
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def close(self):
        os.close(self.output)
        os.close(self.input)
        self.process.terminate()
        self.process.wait(30)

    def receive(self, seconds=120):
        """The next message; an event is kept in `heard`, too."""
        while b"\0" not in self.pending:
            if not select.select([self.input], [], [], seconds)[0]:
                raise RuntimeError(f"the browser has said nothing for {seconds} s")
            more = os.read(self.input, 1 << 20)
            if not more:
                raise RuntimeError("the browser went away")
            self.pending += more
        text, self.pending = self.pending.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.heard.append(message)
        return message

    def call(self, method, **params):
        self.n_sent += 1
        message = {"id": self.n_sent, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.output, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.n_sent:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path):
        """A page of this machine's files, until it is whole."""
        self.call("Page.navigate", url="file://" + path)
        for _ in range(600):
            if self.ask("document.readyState === 'complete' && location.protocol === 'file:'"):
                return
        raise RuntimeError(f"{path} does not load")

    def listen(self):
        """From here on `faults` sees what pages complain about."""
        self.call("Runtime.enable")
        self.call("Log.enable")

    def faults(self):
        """What the page's console and its policy complained about since the last call, as sentences."""
        found = []
        for message in self.heard:
            what, params = message["method"], message.get("params", {})
            if what == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                found.append(f"exception: {details.get('exception', {}).get('description', details['text'])}")
            elif what == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                found.append(f"console: {[a.get('value', a.get('description')) for a in params['args']]}")
            elif what == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {params['entry']['text']} {params['entry'].get('url', '')}")
        self.heard.clear()
        return found

    def wait_for(self, expression, seconds=30):
        """Until the expression is true; its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.ask(f"(() => {{ const v = ({expression}); return v instanceof Node ? true : v; }})()")
            if value:
                return value
            time.sleep(0.02)
        raise RuntimeError(f"waited {seconds} s in vain for {expression}; the page says: "
                           f"{self.ask('document.body?.innerText.slice(0, 600)')}")

    def press(self, key, code=None, number=0, text=None):
        """A key, as a person presses it."""
        common = {"key": key, "code": code or key, "windowsVirtualKeyCode": number, "nativeVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def ask(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def show(self, width, scheme, media="screen"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        height = min(int(self.ask("document.documentElement.scrollHeight")), PIXELS_MAX)
        width = int(self.ask("document.documentElement.clientWidth"))
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))

    def print(self, path):
        pdf = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        with open(path, "wb") as f:
            f.write(base64.b64decode(pdf["data"]))
