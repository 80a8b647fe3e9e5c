#!/usr/bin/env python3
"""The live page in a real browser (headless Chromium) against the real daemon: one program of 1,000 cells at work, whose names are
markup, and one with its verdict. What is wrong is collected, so that one run names everything. PREREGD_PICTURES=FOLDER keeps
pictures of all pages."""

import json
import os
import socket
import socketserver
import subprocess
import tempfile
import threading
import urllib.parse
import urllib.request

from lib import lab, rogue
from lib.browser import CONTRAST, Chromium, find_chromium
from lib.lab import expect
from lib.two_arms import decision

SEEDS = 500
EVIL = ["<img src=x onerror=document.title='owned'>", "</td><script>document.title='owned'</script>"]
NODES_MAX = 1200  # of a page with 1,000 cells

WORKER = r'''#!/usr/bin/python3
"""Says how far it is whenever the file "steps" has another number, until the file "released" is there."""
import json, os, sys, time
if "--describe" in sys.argv:
    sys.exit(64)
here = json.load(open(os.environ["PREREG_TASK"]))["params"]["folder"]
def say(**event):
    with open(os.environ["PREREG_EVENTS"], "a") as f:
        f.write(json.dumps(event) + "\n")
print("\x1b[31m<b>bold</b>\u202egnirts", file=sys.stderr, flush=True)
say(type="section", name="step")
for step in range(1, 6):
    say(type="point", step=step, name="loss", value=5.0 / step)
seen = 0
while not os.path.exists(os.path.join(here, "released")):
    try:
        now = int(open(os.path.join(here, "steps")).read())
    except (OSError, ValueError):
        now = 1
    if now != seen:
        seen = now
        say(type="progress", done=now, total=100, unit="step")
    time.sleep(0.1)
'''

GRID = """[program]
name = "big"
schema = 1
question = "Is <script>document.title='owned'</script> \\u202e text?"

[[factor]]
name = "arm"
levels = [{levels}]
[[factor]]
name = "seed"
levels = [{seeds}]
replicate = true

[stage.train]
command = ["./page_worker.py"]
params = {{ folder = "{folder}", seed = "$seed", arm = "$arm" }}
[stage.probe]
after = ["train"]
command = ["./page_worker.py"]
params = {{ folder = "{folder}", seed = "$seed", arm = "$arm" }}
[measure]
score = {{ metric = "probe.score", items = 100, chance = 0.25, floor = 0.50 }}
""" + decision("arm", ("{first}", "{second}")) + """
[exclusion]
budget = 0.5
[run]
slots = 1
"""

# What is wrong with the page in its window, as a list of sentences.
LAYOUT = """(() => {
  const wrong = [], all = s => [...document.querySelectorAll(s)];
  const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (over > 0) wrong.push(`the page is ${over} px wider than its window`);
  if (all('h1').length !== 1) wrong.push(`${all('h1').length} of h1`);
  for (const t of all('table')) {
    if (!t.caption || !t.caption.textContent.trim()) wrong.push('a table without a caption');
    if (t.querySelector('th:not([scope])')) wrong.push('a heading of a table without a scope');
  }
  for (const r of all('[role=region]'))
    if (r.tabIndex !== 0 || !r.getAttribute('aria-label')) wrong.push('a region out of reach of the keyboard');
  for (const i of all('input, select, button'))
    if (!i.labels?.length && !i.getAttribute('aria-label') && !i.textContent.trim()) wrong.push('a control without a name');
  return wrong;
})()"""


WIDTHS = ((1280, "light"), (640, "light"), (390, "dark"), (320, "light"))  # 640: of 1280 at 200 %; 320: at 400 %
PICTURES = os.environ.get("PREREGD_PICTURES")


class Wrong(list):
    def __call__(self, condition, text):
        if not condition:
            self.append(text)
            print(f"wrong: {text}", flush=True)


def submit_big(place):
    place.write("big/page_worker.py", WORKER, mode=0o755)
    quoted = [json.dumps(level) for level in EVIL]
    grid = place.write("big/grid.toml", GRID.format(levels=", ".join(quoted), seeds=", ".join(str(i + 1) for i in range(SEEDS)),
                                                    folder=place.path("big"), first=EVIL[0], second=EVIL[1]))
    place.ctl("lock", grid)
    place.must(lab.OK, "preregd", "submit", "--run", grid)
    place.wait_for(lambda: any(t["state"] == "running" and t["done"] for t in place.tasks("big").values()), 120, "a task runs", 0.3)


def go(browser, address):
    browser.ask(f"void (location.hash = {json.dumps(address)})")


def seen(browser, wrong, expression, text, seconds=30):
    """Whether the expression becomes true; if not, that is wrong."""
    try:
        return browser.wait_for(expression, seconds)
    except RuntimeError as error:
        wrong(False, f"{text}: {error}")
        return None


def check_token(browser, wrong, url):
    base, token = url.split("#token=")
    browser.call("Page.navigate", url=base)
    seen(browser, wrong, "document.body?.innerText.includes('preregctl open')", "without a token the page says what to type")
    wrong(browser.ask("document.querySelectorAll('.card').length") == 0, "without a token there is a program to see")
    browser.faults()  # the refusals, which a console notes
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=url)
    seen(browser, wrong, "document.querySelectorAll('.card').length === 2", "with the token both programs are shown")
    wrong(token not in browser.ask("location.href"), "the token stays in the address")
    wrong(browser.ask("document.cookie") == "", "script can read the cookie")
    return base


def check_widths(browser, wrong, address):
    for width, scheme in WIDTHS:
        browser.show(width, scheme)
        browser.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
        for w in browser.ask(LAYOUT) + browser.ask(CONTRAST):
            wrong(False, f"{address}, {width} px, {scheme}: {w}")
        if PICTURES:
            os.makedirs(PICTURES, exist_ok=True)
            name = "".join(c if c.isalnum() else "-" for c in urllib.parse.unquote(address)).strip("-")[:70] or "programs"
            browser.picture(os.path.join(PICTURES, f"{name}-{width}-{scheme}.png"))


def check_pages(browser, wrong, big, small, task):
    """Every page: nothing to complain about, wide and narrow, light and dark."""
    cell = "/".join(urllib.parse.quote(part, safe="") for part in task.rsplit("/", 1))
    pages = {"#/": ".card", f"#/program/{big}": ".matrix tbody a", f"#/program/{big}/curves": ".plot .curve",
             f"#/program/{big}/curves?stage=probe&metric=loss": "h1", f"#/program/{big}/cell/{cell}": ".log",
             f"#/program/{big}/plan": "table", f"#/program/{big}/verdict": ".notice.seal", "#/machine": ".meter",
             f"#/program/{small}": ".verdict", f"#/program/{small}/verdict": ".verdict .outcome", "#/nowhere": "h1"}
    for address, wanted in pages.items():
        browser.show(1280, "light")
        go(browser, address)
        seen(browser, wrong, f"document.querySelectorAll({json.dumps('main ' + wanted)}).length > 0", f"{address} has {wanted}")
        check_widths(browser, wrong, address)
        for fault in browser.faults():
            wrong(False, f"{address}: {fault}")
        wrong(browser.ask("document.querySelectorAll('main img, main script').length") == 0, f"{address}: a name became markup")
        wrong("owned" not in browser.ask("document.title") or "<" in browser.ask("document.title"), f"{address}: a name was run")
    browser.show(1280, "light")


def check_names(browser, wrong, big, task):
    go(browser, f"#/program/{big}")
    seen(browser, wrong, "document.querySelector('main .matrix tbody a')", "the matrix is there")
    text = browser.ask("document.querySelector('main').textContent")
    for name in EVIL:
        find = "document.querySelector('.find input')"
        browser.ask(f"{find}.value = {json.dumps(name)}; {find}.dispatchEvent(new Event('input'))")
        seen(browser, wrong, f"document.querySelector('.matrix tbody').textContent.includes({json.dumps(name)})", f"{name} is shown as it is", 5)
    browser.ask(f"{find}.value = ''; {find}.dispatchEvent(new Event('input'))")
    wrong("\u202e" not in text and "\\u202e" in text, "an override of direction is obeyed")
    cell, stage = task.rsplit("/", 1)
    go(browser, f"#/program/{big}/cell/{urllib.parse.quote(cell, safe='')}/{stage}")
    seen(browser, wrong, "document.querySelector('.log')?.textContent.includes('<b>bold</b>')", "the log is text")
    wrong("\u202e" not in browser.ask("document.querySelector('.log')?.textContent ?? ''"), "the log turns the direction")


def check_matrix(browser, wrong, big):
    """1,000 cells: few nodes, one frame (stated, not judged), and the whole of it by keyboard."""
    def durations():
        found = {m["name"]: m["value"] for m in browser.call("Performance.getMetrics")["metrics"]}
        return 1000 * (found["ScriptDuration"] + found["LayoutDuration"] + found["RecalcStyleDuration"])

    browser.call("Performance.enable")
    go(browser, "#/machine")
    seen(browser, wrong, "document.querySelector('.meter')", "the machine's page")
    before = durations()
    go(browser, f"#/program/{big}")
    seen(browser, wrong, "document.querySelector('.matrix')?.getAttribute('role') && document.querySelector('table[role=grid]')"
                         f"?.getAttribute('aria-rowcount') === '{2 * SEEDS + 1}'", "the matrix knows its rows")
    first = durations() - before
    before = durations()
    browser.ask("new Promise(done => { document.querySelector('.matrix').scrollTop = 9000; "
                "requestAnimationFrame(() => requestAnimationFrame(() => done(true))); })")
    print(f"{2 * SEEDS} cells: {first:.1f} ms of script, style and layout from address to matrix, {durations() - before:.1f} ms to scroll", flush=True)
    n = browser.ask("document.querySelectorAll('*').length")
    wrong(n < NODES_MAX, f"{n} nodes for {2 * SEEDS} cells")
    browser.ask("document.querySelector('.matrix').scrollTop = 0")
    seen(browser, wrong, "document.querySelector('.matrix tbody a[tabindex=\"0\"]')", "a cell of the matrix is in the order of the keyboard")
    browser.ask("document.querySelector('.matrix tbody a[tabindex=\"0\"]')?.focus()")
    for key, number in (("ArrowDown", 40), ("ArrowRight", 39)):
        browser.press(key, number=number)
    at = "(document.activeElement.closest('tr')?.getAttribute('aria-rowindex') + ' ' + document.activeElement.parentElement.cellIndex)"
    seen(browser, wrong, f"{at} === '3 1'", "arrows move in the matrix", 5)
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="End", code="End", windowsVirtualKeyCode=35, modifiers=2)
    seen(browser, wrong, f"{at} === '{2 * SEEDS + 1} 2'", "Ctrl+End reaches the last task", 5)
    browser.press("Enter", number=13, text="\r")
    seen(browser, wrong, "location.hash.includes('/cell/') && location.hash.endsWith('/probe')", "Enter opens a task", 5)


def check_live(browser, wrong, place, big):
    go(browser, f"#/program/{big}")
    running = "[...document.querySelectorAll('.matrix .s-work .word')].map(e => e.textContent)"
    for step in (17, 42):
        place.write("big/steps", str(step))
        seen(browser, wrong, f"{running}.includes('{step} %')", f"step {step} is seen by itself")


def n_streams(base, token):
    request = urllib.request.Request(f"{base}metrics", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        lines = [line for line in answer.read().decode().splitlines() if "streams" in line and not line.startswith("#")]
    return int(float(lines[0].split()[-1])) if lines else None


def check_hidden(browser, wrong, place, url):
    """A tab that is hidden has no stream; shown again it catches up."""
    base, token = url.split("#token=")
    expect(n_streams(base, token) is not None, "/metrics does not count streams")
    place.wait_for(lambda: n_streams(base, token) == 1, 30, "one stream for one tab")
    hide = ("Object.defineProperty(document, 'hidden', {configurable: true, get: () => %s}); "
            "document.dispatchEvent(new Event('visibilitychange'))")
    browser.ask(f"(() => {{ {hide % 'true'}; return true; }})()")
    try:
        place.wait_for(lambda: n_streams(base, token) == 0, 30, "a hidden tab closes its stream")
    except lab.Failed as error:
        wrong(False, str(error))
    place.write("big/steps", "77")
    place.wait_for(lambda: any(t["done"] == 77 for t in place.tasks("big").values()), 60, "the daemon knows step 77", 0.2)
    wrong(not browser.ask("document.body.innerText.includes('77 %')"), "a hidden tab is kept up to date")
    browser.ask(f"(() => {{ {hide % 'false'}; return true; }})()")
    seen(browser, wrong, "[...document.querySelectorAll('.matrix .s-work .word')].some(e => e.textContent === '77 %')", "a tab that is shown again catches up")


class Tunnel(socketserver.ThreadingTCPServer):
    """What ssh -L does: another port of this machine leads to the page's."""
    daemon_threads = True

    def __init__(self, port):
        self.to = port
        super().__init__(("127.0.0.1", 0), self.Link)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Link(socketserver.BaseRequestHandler):
        def handle(self):
            with socket.create_connection(("127.0.0.1", self.server.to)) as there:
                threading.Thread(target=self.copy, args=(there, self.request), daemon=True).start()
                self.copy(self.request, there)

        @staticmethod
        def copy(source, target):
            try:
                while part := source.recv(65536):
                    target.sendall(part)
                target.shutdown(socket.SHUT_WR)
            except OSError:
                pass


def check_tunnel(browser, wrong, url):
    """Through another port and under another name: the page, its session and its stream."""
    port, token = int(url.split(":")[2].split("/")[0]), url.split("#token=")[1]
    with Tunnel(port) as tunnel:
        browser.call("Page.navigate", url=f"http://preregd.localhost:{tunnel.server_address[1]}/#token={token}")
        seen(browser, wrong, "document.querySelector('.card') && document.querySelector('#link').textContent.includes('live')",
             "the page through a tunnel")
        browser.call("Page.navigate", url="about:blank")
        tunnel.shutdown()


def check_neighbour(browser, wrong, place, url):
    """Another daemon of this machine, at another port of the same host: neither ends the other's session."""
    place.write("neighbour/serve.toml", '[http]\nlisten = "127.0.0.1:0"\n', mode=0o600)
    env = {**place.env, "PREREGD_STATE": place.path("neighbour")}
    with open(place.path("neighbour.out"), "ab") as log:
        other = subprocess.Popen([os.path.join(place.bin, "preregd"), "serve"], env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    place.wait_for(lambda: place.run("preregctl", "open", "--print", "--json", env=env).returncode == 0, 60, "the other daemon answers")
    its = json.loads(place.must(lab.OK, "preregctl", "open", "--print", "--json", env=env).stdout)["url"]
    base, its_base = url.split("#")[0], its.split("#")[0]
    for address, wanted in ((url, ".card"), (its, "pre.command"), (base, ".card"), (its_base, "pre.command"), (base, ".card")):
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=address)
        seen(browser, wrong, f"document.querySelector('main {wanted}') && document.querySelector('#link').textContent.includes('live')",
             f"two daemons, {'with' if '#' in address else 'without'} the token of {'one' if address.startswith(base) else 'the other'}")
    other.kill()
    other.wait()


def check_killed(browser, wrong, place, small):
    place.kill_daemon()
    seen(browser, wrong, "document.querySelector('.bar')?.textContent.includes('does not answer')", "a daemon that is gone is noticed")
    wrong(browser.ask("document.querySelectorAll('.matrix tbody a').length") > 0, "what was seen last is gone with the daemon")
    check_widths(browser, wrong, "#/daemon is gone")
    browser.show(1280, "light")
    browser.faults()  # connections that were refused
    lock = os.path.join(place.state, "programs", small, "grid.toml.lock")
    os.rename(lock, lock + ".away")
    place.serve()
    seen(browser, wrong, "!document.querySelector('.bar') && document.querySelector('#link').textContent.includes('live')", "the page finds the daemon again", 60)
    place.write("big/steps", "88")
    seen(browser, wrong, "[...document.querySelectorAll('.matrix .s-work .word')].some(e => e.textContent === '88 %')", "it is live again", 60)


def check_damaged(browser, wrong, small):
    """A program that does not load: what is damaged and what to do, and no complaint of the browser."""
    browser.faults()
    for address, wanted in ((f"#/program/{small}", "preregd serve"), (f"#/program/{small}/curves", "preregd serve"), ("#/", "is damaged")):
        go(browser, address)
        seen(browser, wrong, f"document.querySelector('main').innerText.includes('{wanted}') && document.querySelector('main').innerText.includes('grid.toml.lock')",
             f"{address} says what is damaged and what to do")
        check_widths(browser, wrong, f"{address} damaged")
    seen(browser, wrong, "document.querySelector('#link').textContent.includes('live')", "the page is live beside a damaged program")
    for fault in browser.faults():
        wrong(False, f"a damaged program: {fault}")
    browser.show(1280, "light")


def test_page(place):
    chromium = find_chromium()
    if chromium is None:
        lab.skip("there is no Chromium here")
    os.makedirs(place.state, exist_ok=True)
    place.write("state/serve.toml", '[http]\nlisten = "127.0.0.1:0"\n', mode=0o600)
    place.serve()
    small = rogue.program(place, ["good", "garbage"])
    place.must(lab.OK, "preregd", "submit", "--run", "--wait", small)
    submit_big(place)
    ids = {p["name"]: p["id"] for p in place.status()}
    task = next(name for name, t in place.tasks("big").items() if t["state"] == "running")
    url = place.ctl_json("open", "--print")["url"]
    wrong = Wrong()
    with tempfile.TemporaryDirectory(prefix="prereg-browser-") as home:
        browser = Chromium(chromium, home)
        try:
            browser.show(1280, "light")
            browser.listen()
            check_token(browser, wrong, url)
            check_pages(browser, wrong, ids["big"], ids["rogue"], task)
            check_names(browser, wrong, ids["big"], task)
            check_matrix(browser, wrong, ids["big"])
            check_live(browser, wrong, place, ids["big"])
            check_hidden(browser, wrong, place, url)
            check_killed(browser, wrong, place, ids["rogue"])
            check_damaged(browser, wrong, ids["rogue"])
            check_tunnel(browser, wrong, url)
            check_neighbour(browser, wrong, place, url)
        finally:
            browser.close()
    place.write("big/released", "")
    expect(not wrong, f"{len(wrong)} faults of the page")


lab.main(test_page)
