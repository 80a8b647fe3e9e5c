#!/usr/bin/env python3
"""The live page, asked without a browser: every route, who may look, what is shed, the stream over a daemon that is killed and comes
back, and that nothing sealed is in any answer."""

import contextlib
import json
import os
import re
import resource
import socket
import sqlite3
import subprocess
import threading
import time

import test_apparatus
from lib import lab
from lib import rogue
from lib.lab import OK, USAGE, INVALID, equal, expect

OPEN_FILES = ("/", "/page.css", "/page.mjs", "/icon.svg")
IDLE = 10_000
HEADERS = {"x-frame-options": "DENY", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}


class Answer:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if len(lines[0].split()) > 1 else 0
        self.headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines[1:])}

    def json(self):
        return json.loads(self.body)


class Page:
    def __init__(self, place):
        self.place = place
        answer = place.ctl_json("open", "--print")
        self.port, self.token, self.socket = answer["port"], answer["token"], answer["socket"]
        equal(answer["url"], f"http://127.0.0.1:{self.port}/#token={self.token}", "the address")

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return s

    def send(self, raw):
        """The whole answer to raw bytes, until the server closes."""
        with self.connect() as s:
            s.sendall(raw)
            return Answer(read_all(s))

    def get(self, path, token=True, method="GET", **headers):
        lines = {"Host": f"127.0.0.1:{self.port}", "Connection": "close"}
        if token:
            lines["Authorization"] = f"Bearer {self.token}"
        lines.update({k.replace("_", "-"): v for k, v in headers.items()})
        head = "".join(f"{k}: {v}\r\n" for k, v in lines.items() if v is not None)
        return self.send(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode())

    def must(self, path, wanted=200, **more):
        answer = self.get(path, **more)
        equal(answer.status, wanted, f"{path} ({answer.body[:300]!r})")
        for name, value in HEADERS.items():
            equal(answer.headers.get(name), value, f"{name} of {path}")
        expect("default-src 'none'" in answer.headers["content-security-policy"], path)
        return answer


def read_all(s):
    parts = []
    while part := s.recv(65536):
        parts.append(part)
    return b"".join(parts)


class Stream:
    """One tab: events as they come."""

    def __init__(self, page, query="", last=None):
        self.socket = page.connect()
        more = f"Last-Event-ID: {last}\r\n" if last else ""
        self.socket.sendall(f"GET /api/stream{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {page.token}\r\n{more}\r\n".encode())
        self.raw = b""
        self.text = b""
        self.headed = False

    def close(self):
        self.socket.close()

    def more(self, seconds):
        self.socket.settimeout(seconds)
        part = self.socket.recv(65536)
        expect(part, "the stream ended")
        self.raw += part
        if not self.headed:
            head, found, rest = self.raw.partition(b"\r\n\r\n")
            if not found:
                return
            expect(head.startswith(b"HTTP/1.1 200") and b"text/event-stream" in head, head)
            self.headed, self.raw = True, rest
        while match := re.match(rb"([0-9a-fA-F]+)\r\n", self.raw):  # chunks
            size, start = int(match[1], 16), match.end()
            if len(self.raw) < start + size + 2:
                return
            self.text += self.raw[start:start + size]
            self.raw = self.raw[start + size + 2:]

    def event(self, seconds=30):
        """The next event: {"id","event","data"}."""
        while True:
            message, found, rest = self.text.partition(b"\n\n")
            if not found:
                self.more(seconds)
                continue
            self.text = rest
            fields = dict(line.split(": ", 1) for line in message.decode().split("\n") if not line.startswith(":"))
            if "event" in fields:
                return {**fields, "data": json.loads(fields["data"])}

    def until(self, wanted, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            event = self.event(seconds)
            if wanted(event):
                return event
        raise lab.Failed(f"the stream never said: {what}")


def serve_page(place, *options):

    with open(place.path("serve.out"), "ab") as log:
        place.daemon = subprocess.Popen([os.path.join(place.bin, "preregd"), "serve", *options], env=place.env,
                                        stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place.folder)
    place.wait_for(lambda: place.run("preregctl", "status", "--json").returncode == OK, 120, "the daemon answers")


def test_off(place):
    """Without being asked for there is no page: no socket, no token; what is wrong with an address is said."""
    place.serve()
    equal([n for n in os.listdir(place.state) if n.startswith("http")], [], "files of a page that is off")
    place.ctl("stop")
    place.daemon.wait()
    for bad in ("0.0.0.0:80", "example.org:1", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536"):
        said = place.must(USAGE, "preregd", "serve", "--http", bad)
        expect("expected a loopback address and a port" in said.stderr, said.stderr)
    path = place.write("state/serve.toml", '[http]\nlisten = "192.168.0.1:80"\n', mode=0o600)
    said = place.must(INVALID, "preregd", "serve")
    expect("serve.toml:2:10" in said.stderr and "loopback" in said.stderr, said.stderr)
    with open(path, "w", encoding="utf-8") as f:
        f.write("[http]\n")
    place.serve()
    page = Page(place)
    equal(page.get("/healthz", token=False).status, 200, "of serve.toml")


def test_open(place):
    """`preregctl open`: over ssh the tunnels to type; on a desktop the browser is given a file, and no command line has the token."""
    serve_page(place)
    quiet = {k: v for k, v in place.env.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION")}
    lines = place.must(OK, "preregctl", "open", env=quiet).stdout.splitlines()
    page = Page(place)
    equal(lines, [f"http://127.0.0.1:{page.port}/#token={page.token}"], "where there is neither")
    remote = place.must(OK, "preregctl", "open", env={**quiet, "SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22", "DISPLAY": ":0"}).stdout
    host = socket.gethostname()
    for line in (f"  ssh -N -L 8080:127.0.0.1:{page.port} {host}", f"  ssh -N -L 8080:'{page.socket}' {host}", f"  http://localhost:8080/#token={page.token}"):
        expect(line in remote.splitlines(), f"{line!r} is not in {remote}")
    place.write("tools/xdg-open", f"#!/bin/sh\nprintf '%s\\n' \"$@\" >'{place.path('opened')}'\n", mode=0o755)
    place.must(OK, "preregctl", "open", env={**quiet, "DISPLAY": ":0", "PATH": f"{place.path('tools')}:{quiet['PATH']}"})
    with open(place.path("opened"), encoding="utf-8") as f:
        path, = f.read().splitlines()
    with open(path, encoding="utf-8") as f:
        expect(page.token not in path and f"url=http://127.0.0.1:{page.port}/#token={page.token}" in f.read(), "what the browser is given")
    equal(os.stat(path).st_mode & 0o777, 0o600, f"mode of {path}")


def test_who_may_look(place):
    serve_page(place, "--http")
    page = Page(place)
    for name in ("http.token", "http.port", "http.sock"):
        equal(os.stat(os.path.join(place.state, name)).st_mode & 0o777, 0o600, f"mode of {name}")
    port = page.port
    for path in ("/api/status", "/metrics", "/session", "/api/stream", "/report/x/report.html", "/api/nothing"):
        equal(page.get(path, token=False).status, 401, f"{path} without a token")
        equal(page.get(path, token=False, Authorization="Bearer " + "A" * 43).status, 401, f"{path} with a wrong token")
        equal(page.get(path, token=False, Cookie="preregd-00000000=x").status, 401, f"{path} with a wrong cookie")
    for path in ("/", "/healthz"):
        equal(page.get(path, token=False).status, 200, f"{path} without a token")
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[::2]", "localhost:99999", "a b"):
        for path in ("/", "/api/status"):
            expect(page.get(path, Host=host).status in (400, 403), f"Host {host} of {path}")
    for host in ("localhost", "localhost:8080", f"127.0.0.1:{port}", "127.1.2.3:1", "[::1]:9", "lab.localhost:8080"):
        equal(page.get("/api/status", Host=host).status, 200, f"Host {host}")
    for origin in ("https://evil.example", "null", "http://localhost.evil.example", "file://"):
        equal(page.get("/api/status", Origin=origin).status, 403, f"Origin {origin}")
    equal(page.get("/api/status", Origin="http://localhost:8080").status, 200, "an Origin of here")
    equal(page.get("/api/status", Sec_Fetch_Site="cross-site").status, 403, "cross-site")
    equal(page.get("/api/status", Sec_Fetch_Site="same-origin").status, 200, "same-origin")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        answer = page.get("/api/status", method=method)
        equal((answer.status, answer.headers.get("allow")), (405, "GET, HEAD"), method)
    head = page.get("/api/status", method="HEAD")
    equal((head.status, head.body), (200, b""), "HEAD")
    expect(int(head.headers["content-length"]) > 100, "HEAD says the length")
    equal(page.send(b"POST /api/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello").status, 405, "a body")
    asked = f"GET /api/status HTTP/1.1\r\nAuthorization: Bearer {page.token}\r\nConnection: close\r\n"
    for what, more in (("a body", "Content-Length: 5\r\n\r\nhello"), ("two lengths", "Content-Length: 0\r\nContent-Length: 0\r\n\r\n"),
                       ("two lengths that differ", "Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello"),
                       ("a body in chunks", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")):
        equal(page.send(f"{asked}Host: localhost\r\n{more}".encode()).status, 400, f"GET with {what}")
    equal(page.send(f"{asked}\r\n".encode()).status, 400, "no host")
    equal(page.send(f"{asked.replace('1.1', '1.0')}\r\n".encode()).status, 400, "no host of HTTP/1.0")
    doubled = f"GET /api/status HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nAuthorization: Bearer {page.token}\r\nConnection: close\r\n\r\n"
    equal(page.send(doubled.encode()).status, 400, "two hosts")
    big = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Big: {'x' * 20000}\r\n\r\n"
    equal(page.send(big.encode()).status, 431, "a header block of 20 kB")
    cookie_of(page)
    renewed(place, page)


def cookie_of(page):
    answer = page.must("/session")
    cookie = answer.headers["set-cookie"]
    expect(re.fullmatch(r"preregd-[0-9a-f]{8}=[0-9a-f]{64}; HttpOnly; SameSite=Strict; Path=/", cookie), cookie)
    expect(page.token not in cookie, "the cookie holds the token")
    page.cookie = cookie.split(";")[0]
    equal(page.get("/api/status", token=False, Cookie=f"other=1; {page.cookie}; more=2").status, 200, "the cookie")
    equal(page.get("/api/status", token=False, Cookie=page.cookie[:-1]).status, 401, "a cookie that was cut")


def renewed(place, page):
    """Another token ends sessions and streams; the port stays, also over a restart."""
    stream = Stream(page)
    stream.event()
    old = page.token
    again = place.ctl_json("open", "--print", "--new-token")
    expect(again["token"] != old and again["port"] == page.port, "another token, the same port")
    equal(page.get("/api/status").status, 401, "the old token")
    equal(page.get("/api/status", token=False, Cookie=page.cookie).status, 401, "the old cookie")
    stream.socket.settimeout(30)
    while stream.socket.recv(65536):
        pass
    place.kill_daemon()
    serve_page(place, "--http")
    back = Page(place)
    equal((back.token, back.port), (again["token"], again["port"]), "token and port after a restart")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(back.socket)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        equal(Answer(read_all(s)).body, b"ok\n", "the UNIX socket")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(back.socket)
        s.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        equal(Answer(read_all(s)).status, 400, "no host, at the UNIX socket")
    place.kill_daemon()
    with socket.create_server(("127.0.0.1", back.port)):
        serve_page(place, "--http")
        other = Page(place)
        expect(other.port != back.port, "a port that another program has")
        equal(other.get("/healthz", token=False).status, 200, "another port")


def sealed_values(folder):
    """Every score of the sealed stages, as text that would be found in an answer."""
    found = set()
    for base, _, files in os.walk(os.path.join(folder, "cells")):
        if "result.json" in files and os.path.basename(os.path.dirname(base)) in ("grammar", "giving"):
            with open(os.path.join(base, "result.json"), encoding="utf-8") as f:
                metrics = json.load(f)["metrics"]
            for value in metrics.values():
                value = value.get("value") if isinstance(value, dict) else value
                if isinstance(value, float) and len(repr(value)) > 12:  # a short one is in other numbers
                    found.add(repr(value))
    return found


def walk(page, program, tasks, wanted_sealed):
    """Asks for everything and returns all bodies."""
    bodies = []
    def ask(path, wanted=200):
        answer = page.must(path, wanted)
        bodies.append(answer.body)
        return answer
    status = ask("/api/status").json()
    equal([p["id"] for p in status["programs"]], [program], "programs")
    ask(f"/api/status?program={program}")
    equal(len(ask(f"/api/cells?program={program}&limit=2").json()["cells"]), 2, "a page of cells")
    cells = ask(f"/api/cells?program={program}").json()
    plan = ask(f"/api/plan?program={program}").json()
    equal([s["seals"] for s in plan["stages"]], [False, True, True], "sealed stages")
    equal([f["name"] for f in plan["factors"]], ["arch", "seed"], "factors")
    ask("/api/disk")
    ask("/api/machine")
    ask(f"/api/verdict?program={program}")
    metrics = ask("/metrics").body.decode()
    for line in metrics.splitlines():
        expect(line.startswith("#") or re.fullmatch(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+', line), line)
    expect(f'preregd_tasks{{program="{program}",state="done"}}' in metrics, metrics)
    for task in tasks:
        ask(f"/api/explain?program={program}&task={task}")
        logs = ask(f"/api/logs?program={program}&task={task}").json()
        if logs["attempts"]:
            for file in ("stdout", "stderr", "events"):
                ask(f"/api/tail?program={program}&task={task}&file={file}&attempt=1")
            ask(f"/api/files?program={program}&task={task}")
    listed = ask(f"/api/curves?program={program}").json()["metrics"]
    expect({"stage": "train", "metric": "loss", "unit": None, "sealed": False} in listed, listed)
    for m in listed:
        equal(m["sealed"], wanted_sealed and m["stage"] != "train", f"sealed: {m}")
    curves = ask(f"/api/curves?program={program}&stage=train&metric=loss&points=20&cells=1").json()
    for arm in curves["arms"]:
        expect(0 < len(arm["points"]) <= 20 and all(p[2] <= p[1] <= p[3] for p in arm["points"]), arm)
    expect(curves["arms"] and curves["cells"], curves)
    ask(f"/api/curves?program={program}&stage=grammar&metric=acc", 409 if wanted_sealed else 200)
    return bodies, cells


def test_program(place):
    """micro: what is asked while it runs has nothing sealed; a tab over a killed daemon; the report after the end."""
    grid = place.prepare_small()
    place.ctl("lock", grid)
    serve_page(place, "--http")
    page = Page(place)
    program = json.loads(place.must(OK, "preregd", "submit", grid, "--json").stdout)["program"]
    tab, other = Stream(page, f"?program={program}"), Stream(page)
    full = tab.until(lambda e: e["event"] == "cells", "cells")
    equal((full["data"]["full"], full["data"]["program"]), (True, program), "the first is whole")
    equal(len(full["data"]["changed"]), 18, "tasks of the first")
    state = {(c["cell"], c["stage"]): c["task"]["state"] for c in full["data"]["changed"]}
    ids = [full["id"]]

    def follow(stream, wanted, what):
        def take(e):
            if e["event"] == "cells":
                for c in e["data"]["changed"]:
                    state[(c["cell"], c["stage"])] = c["task"]["state"]
            ids.append(e.get("id", ids[-1]))
            return wanted()
        stream.until(take, what, 120)
    follow(tab, lambda: list(state.values()).count("done") >= 9, "half of the tasks are done")
    numbers = [int(i.rsplit("-", 1)[1]) for i in ids]
    equal(numbers, sorted(numbers), "numbers rise")
    # paused, so that scores are there and sealed, and nothing moves
    place.ctl("pause", program)
    place.wait_for(lambda: not any(t["state"] in ("starting", "running") for t in place.tasks().values()), 120, "nothing runs")
    tab.close()  # hidden
    names = list(place.tasks())
    bodies, _ = walk(page, program, names, True)
    values = sealed_values(place.program_folder())
    expect(values, "there are sealed scores to look for")
    other.socket.settimeout(0.2)
    try:
        while True:
            other.more(0.2)
    except (TimeoutError, socket.timeout):
        pass
    for body in [*bodies, tab.text, other.text]:
        for value in values:
            expect(value.encode() not in body, f"the sealed {value} is in {body[:200]!r}")
    other.close()
    resumed(place, page, program, ids[-1])
    place.ctl("resume", program)
    back = Stream(page, f"?program={program}")
    follow(back, lambda: list(state.values()).count("done") == 18, "all are done")
    back.close()
    place.wait_finished(120)
    ended(place, page, program, names)


def resumed(place, page, program, last):
    """A tab that comes back gets what it missed; of another process, everything; one that is closed costs nothing."""
    same = Stream(page, f"?program={program}", last=last)
    kinds = [same.event() for _ in range(1)]
    expect(not any(e["event"] == "cells" and e["data"]["full"] for e in kinds), "a tab that came back gets all cells again")
    same.close()
    place.wait_for(lambda: "preregd_page_streams 0" in page.must("/metrics").body.decode(), 30, "closed streams are gone")
    place.kill_daemon()
    serve_page(place, "--http")
    again = Page(place)
    equal((again.port, again.token), (page.port, page.token), "the page is where it was")
    tab = Stream(again, f"?program={program}", last=last)
    first = tab.until(lambda e: e["event"] == "cells", "cells")
    expect(first["data"]["full"] and first["id"].split("-")[0] != last.split("-")[0], "another process: everything, another epoch")
    tab.close()


def ended(place, page, program, names):
    bodies, _ = walk(page, program, names, False)
    expect(any(v.encode() in b for v in sealed_values(place.program_folder()) for b in bodies), "scores are in answers after the end")
    report = page.must(f"/report/{program}/report.html")
    expect("script" not in report.headers["content-security-policy"] and report.body.startswith(b"<!"), "report")
    equal(page.must(f"/report/{program}/verdict.json").body, place.verdict_bytes(), "verdict.json")
    for bad in ("..", "../grid.toml", "%2e%2e/grid.toml", "..%2fgrid.toml", "x/../../grid.toml", "/etc/passwd", "%2fetc/passwd", "nothing", "."):
        answer = page.get(f"/report/{program}/{bad}")
        expect(answer.status in (400, 404), f"{bad}: {answer.status}")
    for query, wanted in ((f"program={program}&task={names[0]}&file=../result.json", 400), (f"program={program}&task=../..&file=stdout", 404),
                          (f"program={program}&task={names[0]}&file=stdout&bytes=300000", 400), (f"program={program}&task={names[0]}&attempt=99", 404),
                          ("program=nothing&task=x", 404), (f"program={program}", 400), (f"program={program}&program=x", 400),
                          (f"program={program}&task=%ff", 400), (f"program={program}&task=%0a", 400), ("program=%3Cscript%3E&task=a", 404),
                          ("unknown=1", 400)):
        answer = page.get(f"/api/tail?{query}")
        equal(answer.status, wanted, f"/api/tail?{query}: {answer.body[:200]!r}")
        expect(set(answer.json()["error"]) == {"code", "message"}, answer.body)
    first = page.must("/")
    expect(page.get("/", If_None_Match=first.headers["etag"]).status == 304, "ETag")
    asked = f"/api/curves?program={program}&stage=train&metric=loss"
    curves = page.must(asked).body
    for folder in os.listdir(os.path.join(place.program_folder(), "cells")):
        os.rename(os.path.join(place.program_folder(), "cells", folder), os.path.join(place.program_folder(), "cells", f"{folder}.away"))
    equal(page.must(asked).body, curves, "curves after the verdict are not read again")
    equal(page.must(f"{asked}&points=50").json()["arms"], [], "other points are")
    for folder in os.listdir(os.path.join(place.program_folder(), "cells")):
        os.rename(os.path.join(place.program_folder(), "cells", folder), os.path.join(place.program_folder(), "cells", folder.removesuffix(".away")))
    hostile(place, page, program, names[0])


def hostile(place, page, program, task):
    """What a worker leaves in its folder: control characters, links, pipes, names."""
    folder = page.must(f"/api/files?program={program}&task={task}").json()["folder"]
    with open(os.path.join(folder, "stdout.log"), "wb") as f:
        f.write(b"\x1b[31mred\x00\xff\r<script>\n" + b"x" * 70000 + b"\nlast\n")
    os.rename(os.path.join(folder, "stdout.log"), os.path.join(folder, "kept"))
    os.symlink("/etc/passwd", os.path.join(folder, "stdout.log"))
    equal(page.get(f"/api/tail?program={program}&task={task}").status, 500, "a link in the place of a log")
    os.unlink(os.path.join(folder, "stdout.log"))
    os.mkfifo(os.path.join(folder, "stderr.log.fifo"))
    os.mkfifo(os.path.join(folder, "<b>\n\x1b name"))
    os.rename(os.path.join(folder, "kept"), os.path.join(folder, "stdout.log"))
    tail = page.must(f"/api/tail?program={program}&task={task}&bytes=1000")
    equal((tail.body, tail.headers["content-type"], tail.headers["x-preregd-offset"] > "0"), (b"last\n", "text/plain; charset=utf-8", True), "cut at a line")
    whole = page.must(f"/api/tail?program={program}&task={task}&bytes=262144").body
    expect(whole.startswith(b"?[31mred??\n<script>\n"), whole[:40])
    listed = page.must(f"/api/files?program={program}&task={task}").json()["files"]
    expect(all("\n" not in f["path"] and "\x1b" not in f["path"] for f in listed), listed)
    for name in ("stderr.log.fifo", "<b>\n\x1b name"):
        os.unlink(os.path.join(folder, name))


def watch_two(place, page):
    """Two programs whose tasks wait, and a tab on each of them, once it has all cells."""
    place.must(OK, "preregd", "submit", rogue.program(place, ["wait", "good"]))
    bad = place.status()[0]["id"]
    os.remove(place.path("rogue", "grid.toml.lock"))
    place.must(OK, "preregd", "submit", rogue.program(place, ["wait", "good"], budget=0.8))
    good = next(p["id"] for p in place.status() if p["id"] != bad)
    for program in (bad, good):
        place.wait_for(lambda p=program: "running" in [t["state"] for t in place.tasks(p).values()], 60, "a task runs")
    tabs = [Stream(page, f"?program={program}") for program in (bad, good)]
    for tab in tabs:
        tab.until(lambda e: e["event"] == "cells", "cells")
    return bad, good, *tabs


def test_damaged(place):
    """A program whose rows are damaged, and one that does not load: the tab on it hears why, and all that concerns the others goes on;
    a tab on another program notices nothing."""
    serve_page(place, "--http")
    page = Page(place)
    bad, good, tab, other = watch_two(place, page)
    with sqlite3.connect(os.path.join(place.state, "preregd.db"), timeout=30) as db:
        db.execute("INSERT INTO journal SELECT program, max(seq) + 1, '', '' FROM journal"
                   " WHERE program = (SELECT no FROM programs WHERE id = ?)", (bad,))
    db.close()
    place.run("preregctl", "pause", bad)
    equal(tab.until(lambda e: e["event"] == "gone", "gone")["data"], {"why": "damaged"}, "why it is gone")
    is_said = lambda e: e["event"] == "status" and [u["id"] for u in e["data"]["unloaded"]] == [bad]
    said = tab.until(is_said, "what is damaged")
    expect("preregctl rebuild" in said["data"]["unloaded"][0]["why"], said)
    fresh = Stream(page, f"?program={bad}")
    equal([fresh.event()["event"], is_said(fresh.event())], ["gone", True], "a tab that comes only now")
    equal(Stream(page, "?program=nothing").event()["data"], {"why": "unknown"}, "a program that never was")
    for path in ("cells", "plan", "curves", "explain"):
        answer = page.must(f"/api/{path}?program={bad}{'&task=x' if path == 'explain' else ''}", 409)
        expect("preregctl rebuild" in answer.json()["error"]["message"], answer.body)
    rogue.release(place)
    heard = []
    other.until(lambda e: heard.append(e) or any(c["task"]["state"] == "done" for c in e["data"].get("changed", [])), "the end of the task that waited")
    expect(not any(e["event"] == "gone" or e["data"].get("full") for e in heard), "the tab on the other program was disturbed")
    place.wait_finished(120)
    for stream in (tab, fresh, other):
        equal(stream.until(lambda e: e["event"] == "status" and all(p["verdict"] for p in e["data"]["programs"]), "the verdict")["event"], "status", "all go on")
    repaired(place, page, bad, good)


def repaired(place, page, bad, good):
    """A tab that stays over a daemon that does not load a program hears of it, and of its repair."""
    place.ctl("stop")
    place.daemon.wait()
    lock = os.path.join(place.state, "programs", bad, "grid.toml.lock")
    place.must(OK, "preregctl", "rebuild")
    os.rename(lock, lock + ".away")
    serve_page(place, "--http")
    tab = Stream(page, f"?program={bad}")
    equal(tab.event()["data"], {"why": "damaged"}, "a program that did not load")
    status = tab.event()["data"]
    equal(([u["id"] for u in status["unloaded"]], [p["id"] for p in status["programs"]]), ([bad], [good]), "what is served")
    tab.close()
    place.ctl("stop")
    place.daemon.wait()
    os.rename(lock + ".away", lock)
    serve_page(place, "--http")
    tab = Stream(page, f"?program={bad}")
    expect(tab.until(lambda e: e["event"] == "cells", "cells")["data"]["full"], "it is served again")
    tab.close()


def cells_of(stream, wanted, what, seconds=90):
    """The stream's messages of cells until wanted(message, all so far); numbers only rise."""
    found, last = [], 0

    def take(e):
        nonlocal last
        if "id" in e:
            expect(int(e["id"].rsplit("-", 1)[1]) > last, f"{e['id']} comes twice")
            last = int(e["id"].rsplit("-", 1)[1])
        if e["event"] != "cells":
            return False
        found.append((last, e["id"], e["data"]))
        return wanted(found)
    stream.until(take, what, seconds)
    return found


@contextlib.contextmanager
def hurried(place):
    """Progress waits up to a second for rows that it can share a commit with: here are some."""
    going = True

    def pause():
        while going:
            place.ctl("pause")
            place.ctl("resume")
    thread = threading.Thread(target=pause)
    thread.start()
    try:
        yield
    finally:
        going = False
        thread.join()


def test_reconnects(place):
    """A tab that drops and comes back gets every message once, in order; one that was away for longer than the ring remembers, of
    another program or of another daemon gets everything again."""
    serve_page(place, "--http")
    page = Page(place)
    place.must(OK, "preregd", "submit", rogue.program(place, ["wait", "good"]))
    program = place.status()[0]["id"]
    place.wait_for(lambda: "running" in [t["state"] for t in place.tasks().values()], 60, "a task runs")
    steady = Stream(page, f"?program={program}")
    got, last = [], None
    for turn in range(6):
        as_query = turn % 2 == 1
        tab = Stream(page, f"?program={program}{f'&last={last}' if as_query else ''}", last=None if as_query else last)
        part = cells_of(tab, lambda found: len(found) == 3, "three changes")
        tab.socket.shutdown(socket.SHUT_RDWR)
        tab.close()
        expect([m[2]["full"] for m in part] == [turn == 0, False, False], "only the first is whole")
        got += part
        last = part[-1][1]
        time.sleep(0.4 * (turn % 3))
    kept = cells_of(steady, lambda found: found[-1][0] >= got[-1][0], "as far as the other tab")
    equal([m for m in kept if got[0][0] < m[0] <= got[-1][0]], got[1:], "what the tab that came and went has got")
    with hurried(place):
        missed = cells_of(steady, lambda found: len(found) == 70, "more changes than the ring has")
    too_old = cells_of(Stream(page, f"?program={program}", last=last), lambda found: len(found) == 2, "everything, and a change")
    equal([m[2]["full"] for m in too_old], [True, False], "a tab that was away for too long")
    task = lambda data: next(c["task"]["done"] for c in data["changed"] if c["task"]["state"] == "running")
    expect(task(too_old[0][2]) >= task(missed[-1][2]), "everything is from before")
    kept = cells_of(steady, lambda found: found[-1][0] >= too_old[1][0], "as far as the other tab")
    equal([m for m in kept if m[0] > too_old[0][0]], [too_old[1]], "what follows everything")
    now = kept[-1][1]
    epoch, no = now.rsplit("-", 1)
    for wrong in (f"{epoch}9-{no}", f"{epoch}-{int(no) + 1000000}", f"0{epoch}-{no}", f"{epoch}--1", "x"):
        first = cells_of(Stream(page, f"?program={program}", last=wrong), lambda found: True, "cells")
        expect(first[0][2]["full"], f"Last-Event-ID {wrong}")
    place.kill_daemon()
    serve_page(place, "--http")
    back = cells_of(Stream(page, f"?program={program}", last=now), lambda found: len(found) == 3, "everything of the next daemon, and changes")
    equal([m[2]["full"] for m in back], [True, False, False], "a daemon that was started again")
    expect(back[0][1].split(".")[0] != now.split(".")[0], "the same epoch")
    again = cells_of(Stream(page, f"?program={program}", last=back[-1][1]), lambda found: len(found) == 2, "changes")
    expect(not any(m[2]["full"] for m in again), "of the same daemon again")
    rogue.release(place)


def test_shed(place):
    """Slow headers, and ten thousand connections that say nothing: RPC answers, so does the page, and workers run to a verdict."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (IDLE + 1000, max(IDLE + 1000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    serve_page(place, "--http")
    grid = rogue.program(place, ["wait", "good"])
    page = Page(place)
    idle = []
    slow = page.connect()
    slow.sendall(b"GET / HTTP/1.1\r\nHost: loc")
    began = time.monotonic()
    for _ in range(IDLE):
        try:
            idle.append(page.connect())
        except OSError:
            break
    expect(len(idle) == IDLE, f"{len(idle)} connections")
    place.must(OK, "preregd", "submit", grid)
    expect(place.run("preregctl", "status", "--json").returncode == OK, "RPC answers beside them")
    equal(page.must("/healthz", token=False).body, b"ok\n", "so does the page")
    shed = int(re.search(r"connections_shed_total (\d+)", page.must("/metrics").body.decode())[1])
    expect(shed > IDLE - 200, f"shed {shed}")
    with open(f"/proc/{place.daemon.pid}/status", encoding="utf-8") as f:
        expect(len(os.listdir(f"/proc/{place.daemon.pid}/fd")) < 300, "descriptors are bounded")
    rogue.release(place)
    place.wait_finished(60)
    equal({t["attempts"] for t in place.tasks().values()}, {1}, "attempts beside them")
    for s in idle:
        s.close()
    slow.close()
    slow = page.connect()
    slow.sendall(b"GET / HTTP/1.1\r\nHost: loc")
    began = time.monotonic()
    slow.settimeout(60)
    while True:  # a byte every second does not prolong it
        try:
            slow.sendall(b"a")
            slow.settimeout(1)
            if slow.recv(100) == b"":
                break
        except (TimeoutError, socket.timeout):
            pass
        except OSError:
            break
        expect(time.monotonic() - began < 60, "a slow header is not ended")
    slow.close()


def test_notify(place):
    """[notify]: one object for each event, in order, without scores; a command that fails or hangs harms nothing."""
    out = place.path("events")
    script = place.write("tell", f"#!/bin/sh\ncat >>'{out}'\nexit 3\n", mode=0o755)
    place.write("state/serve.toml", f'[notify]\ncommand = ["{script}", "an argument"]\n', mode=0o600)
    os.chmod(place.state, 0o700)

    def events():
        if not os.path.exists(out):
            return []
        with open(out, encoding="utf-8") as f:
            return [json.loads(line) for line in f]
    place.serve()
    place.must(OK, "preregd", "submit", rogue.program(place, ["wait", "bad_parameters"]))
    place.wait_for(lambda: any(e["event"] == "blocked" for e in events()), 60, "the blocked task is told of")
    place.ctl("pause")
    place.wait_for(lambda: any(e["event"] == "paused" for e in events()), 60, "the pause is told of")
    place.kill_daemon()
    place.serve()
    place.wait_for(lambda: any(e["event"] == "started_after_crash" for e in events()), 60, "the crash is told of")
    place.ctl("resume")
    rogue.release(place)
    place.wait_for(lambda: any(e["event"] == "verdict" for e in events()), 60, "the verdict is told of")
    told = events()
    equal([e["event"] for e in told], ["blocked", "paused", "started_after_crash", "verdict"], "events")
    equal((told[0]["task"], told[0]["cause"]), ("mode=bad_parameters,seed=1/probe", "user_error"), "the blocked task")
    equal(told[1]["paused_by"], "user", "who paused")
    expect(told[3]["kind"] in ("bound", "indeterminate", "void"), told[3])
    expect(all(e["schema"] == 1 and e["dropped"] == 0 for e in told), told)
    with open(os.path.join(place.state, "preregd.log"), encoding="utf-8") as f:
        expect("[notify] command ended with code 3" in f.read(), "a failing command is logged")
    place.ctl("stop")
    place.daemon.wait()
    place.serve()
    time.sleep(0.2)
    equal(len(events()), 4, "events of a daemon that was stopped")
    place.ctl("stop")
    place.daemon.wait()
    for bad in ('command = "x"', "command = []", 'command = ["relative"]', "other = 1"):
        place.write("state/serve.toml", f"[notify]\n{bad}\n", mode=0o600)
        said = place.must(INVALID, "preregd", "serve")
        expect("serve.toml:2:" in said.stderr or "serve.toml:1:" in said.stderr, said.stderr)


def is_ended(pid):
    """Also what nobody has waited for."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_told_of(place):
    """What hung, an apparatus that does not hold, and a command that is late: it is ended with all that it started."""
    out = place.path("events")
    script = place.write("tell", f"#!/bin/sh\ncat >>'{out}'\n", mode=0o755)
    place.write("state/serve.toml", f'[notify]\ncommand = ["{script}"]\n', mode=0o600)
    os.chmod(place.state, 0o700)

    def told(kind):
        if not os.path.exists(out):
            return []
        with open(out, encoding="utf-8") as f:
            return [e for e in map(json.loads, f) if e["event"] == kind]
    test_apparatus.program(place, 0.65)
    place.wait_for(lambda: told("apparatus"), 60, "the apparatus is told of")
    equal([e["paused_by"] for e in told("apparatus")], ["apparatus"], "once, and by whom")
    expect("0.65" not in json.dumps(told("apparatus")), "its score is told")
    place.must(OK, "preregd", "submit", rogue.program(place, ["hang", "good"], run='[run.probe]\ncrashes = 1\ndeadlines = { setup = "3s", step = "3s" }\n'))
    place.wait_for(lambda: told("hang") and told("blocked"), 90, "the hang is told of")
    equal({(e["task"], e["cause"]) for e in told("hang")}, {("mode=hang,seed=1/probe", "hang")}, "what hung")
    place.wait_for(lambda: told("verdict"), 60, "the verdict is told of")
    child = place.path("child")
    place.write("tell", f"#!/bin/sh\nsleep 1000 &\necho $! >'{child}.new'\nmv '{child}.new' '{child}'\nwait\n", mode=0o755)
    place.kill_daemon()
    place.serve()
    place.wait_for(lambda: os.path.exists(child), 30, "the command runs")
    with open(child, encoding="utf-8") as f:
        pid = f.read().strip()
    place.wait_for(lambda: is_ended(pid), 60, "what the late command started is ended")


if __name__ == "__main__":
    lab.main(test_off, test_open, test_who_may_look, test_program, test_damaged, test_reconnects, test_shed, test_notify, test_told_of)
