#!/usr/bin/env python3
"""The socket of a real preregd under clients that mean harm or know no better: garbage, requests without an end, answers
nobody reads, more connections than are served. After each the daemon still answers."""

import json
import os
import random
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

REQUEST_MAX = 1 << 20
CLIENTS_MAX = 64
LEFT_OVER_MAX = 8  # connections that earlier tests closed and the daemon has not noticed yet


class Daemon:
    def __init__(self, build):
        self.folder = tempfile.mkdtemp(prefix="rpc-test-")
        self.path = os.path.join(self.folder, "preregd.sock")
        env = dict(os.environ, PREREGD_STATE=self.folder)
        self.process = subprocess.Popen([os.path.join(build, "bin", "preregd"), "serve"], env=env)
        self.wait_until_it_listens()

    def wait_until_it_listens(self):
        """A socket's path is there once it is bound, which is before anybody listens: only a connection says so."""
        until = time.monotonic() + 30
        while True:
            try:
                self.open().close()
                return
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def open(self, timeout=10):
        s = socket.socket(socket.AF_UNIX)
        s.connect(self.path)  # blocking: waits while the backlog is full
        s.settimeout(timeout)
        return s

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=20)
        gone = not os.path.exists(self.path)
        shutil.rmtree(self.folder)
        assert code == 0, f"the daemon ended with {code}"
        assert gone, "the socket is left behind"


def read_line(s):
    data = b""
    while not data.endswith(b"\n"):
        more = s.recv(65536)
        if not more:
            return None
        data += more
    return json.loads(data)


def ask(s, request):
    s.sendall((request if isinstance(request, bytes) else json.dumps(request).encode()) + b"\n")
    return read_line(s)


def answers(d):
    with d.open() as s:
        reply = ask(s, {"schema": 1, "id": 4, "method": "ping"})
        assert reply["ok"] and reply["id"] == 4 and reply["result"]["pid"] == d.process.pid, reply


def test_socket_is_ours_alone(d):
    mode = os.stat(d.path).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600, oct(mode)


def test_bad_requests(d):
    cases = [
        (b"", "syntax"), (b"garbage", "syntax"), (b"[]", "syntax"), (b"{}", None), (b"null", "syntax"), (b"\xff\xfe", "syntax"),
        (b'{"schema":1,"id":1,"method":"nothing"}', "usage"), (b'{"schema":9,"id":1,"method":"ping"}', "version"),
        (b'{"schema":1,"id":1,"method":"explain","params":{"task":"x/y"}}', "not_found"),
        (b'{"schema":1,"id":1,"method":"explain","params":[]}', "usage"),
        (b'{"schema":1,"id":1,"method":"status","params":{"program":"no"}}', "not_found"),
        (b'{"schema":1,"id":1,"method":"submit","params":{"path":"relative"}}', "usage"),
        (b'{"schema":1,"id":1,"method":"submit","params":{"path":"/nonexistent/grid.toml"}}', "not_found"),
        (b'{"schema":1,"id":1,"method":"submit","params":{"path":"/"}}', None),
        (b"[" * 1000 + b"]" * 1000, "range"),
        # longer than a message shows of it, and cut inside a character
        *[(json.dumps({"schema": 1, "id": 1, "method": "status", "params": {"program": lead + "\u00e9" * 90}}, ensure_ascii=False)
           .encode(), "not_found") for lead in ("", "a", "ab")],
    ]
    with d.open() as s:  # one connection: an error does not end it
        for request, name in cases:
            reply = ask(s, request)
            assert reply["schema"] == 1 and not reply["ok"], (request[:60], reply)
            assert name is None or reply["error"]["name"] == name, (request[:60], reply)
        assert ask(s, {"schema": 1, "id": 1, "method": "ping"})["ok"]


def test_every_method_without_a_program(d):
    with d.open() as s:
        for method in ("cells", "explain", "logs", "retry", "cancel", "pause", "resume", "unblind", "verdict", "report", "subscribe"):
            reply = ask(s, {"schema": 1, "id": 2, "method": method, "params": {}})
            assert not reply["ok"] and reply["error"]["name"] == "not_found", (method, reply)


def test_in_small_pieces_and_in_one_go(d):
    line = b'{"schema":1,"id":%d,"method":"ping"}\n'
    with d.open() as s:
        for byte in line % 3:
            s.sendall(bytes([byte]))
        assert read_line(s)["id"] == 3
    with d.open() as s:
        s.sendall(b"".join(line % i for i in range(50)))
        data = b""
        while data.count(b"\n") < 50:
            data += s.recv(65536)
        assert [json.loads(text)["id"] for text in data.splitlines()] == list(range(50))


def test_request_too_large(d):
    with d.open() as s:
        try:
            s.sendall(b"x" * (4 * REQUEST_MAX))
            reply = read_line(s)
        except OSError:
            reply = None  # closed while we were still sending
        assert reply is None or reply["error"]["name"] == "range", reply


def test_too_many_connections(d):
    many = [d.open() for _ in range(CLIENTS_MAX + 20)]
    refused = 0
    waiting = list(many)  # any of them, and a few more: one that an earlier test closed may still count for a moment
    until = time.monotonic() + 20
    while refused < 20 and time.monotonic() < until:
        for s in select.select(waiting, [], [], 1)[0]:
            reply = read_line(s)
            waiting.remove(s)
            refused += reply is not None and reply["error"]["name"] == "busy"
    for s in many:
        s.close()
    assert 20 <= refused <= 20 + LEFT_OVER_MAX, refused
    for _ in range(100):  # the closed ones are noticed at once
        try:
            answers(d)
            return
        except AssertionError:
            time.sleep(0.05)
    answers(d)


def test_who_never_reads_holds_nobody_up(d):
    deaf = d.open()
    deaf.settimeout(2)
    try:
        for _ in range(20000):
            deaf.sendall(b'{"schema":1,"id":1,"method":"ping"}\n')
    except OSError:
        pass
    answers(d)
    deaf.close()


def test_fuzz(d):
    seed = int(os.environ.get("PREREGD_SEED", "7"))
    print(f"  seed {seed}")
    rng = random.Random(seed)
    good = b'{"schema":1,"id":1,"method":"status","params":{"program":"x","task":"a/b","limit":5,"offset":0}}\n'
    for _ in range(400):
        data = bytearray(good * rng.randint(1, 3))
        for _ in range(rng.randint(0, 12)):
            at = rng.randrange(len(data))
            kind = rng.randrange(3)
            if kind == 0:
                data[at] = rng.randrange(256)
            elif kind == 1:
                del data[at:at + rng.randint(1, 9)]
            else:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
            if not data:
                data = bytearray(b"\n")
        with d.open() as s:
            try:
                s.sendall(bytes(data))
                if rng.random() < 0.5:
                    s.shutdown(socket.SHUT_WR)
                    s.recv(4096)
            except OSError:
                pass
    answers(d)


def main():
    d = Daemon(sys.argv[1])
    failed = 0
    try:
        answers(d)
        for name, test in [(n, t) for n, t in globals().items() if n.startswith("test_")]:
            try:
                test(d)
                answers(d)
                print(f"{name}: ok")
            except (AssertionError, OSError) as e:
                failed += 1
                print(f"{name}: FAILED: {e!r}")
    finally:
        d.end()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
