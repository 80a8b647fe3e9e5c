#!/usr/bin/env python3
"""Readers: members of a group may see how programs go, through a socket of their own, and nothing else. Other users are played by
processes of other numeric ids, so this needs root."""

import grp
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile

from lib import lab
from lib import rogue
from lib.lab import ANY, INVALID, NO_DAEMON, OK, equal, expect

GROUP = "games"
MEMBER, STRANGER = 51234, 51235  # uids that need no name
READERS_MAX = 16


class Outside:
    """A folder that other users can reach, with a preregctl of its own."""

    def __init__(self, place, mode=0o755):
        self.folder = tempfile.mkdtemp(prefix="prereg-readers-")
        os.chmod(self.folder, mode)
        self.sockets = os.path.join(self.folder, "lab")
        shutil.copy2(os.path.join(place.bin, "preregctl"), self.folder)
        self.gid = grp.getgrnam(GROUP).gr_gid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *words, uid=MEMBER, gid=None, groups=(), state=None):
        env = {"PREREGD_STATE": state or self.sockets, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
        return subprocess.run([os.path.join(self.folder, "preregctl"), *words], env=env, user=uid,
                              group=self.gid if gid is None else gid, extra_groups=list(groups), cwd="/",
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


ASK = """import json, socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
for method in sys.argv[2:]:
    try:
        s.sendall(json.dumps({"schema": 1, "id": 1, "method": method, "params": {"reason": "r", "task": "t", "path": "/x"}}).encode() + b"\\n")
    except BrokenPipeError:
        pass
    line = b""
    while not line.endswith(b"\\n"):
        line += s.recv(65536)
    print(line.decode(), end="")
"""


def ask(outside, methods, uid=MEMBER, gid=None):
    run = subprocess.run(["/usr/bin/python3", "-c", ASK, os.path.join(outside.sockets, "preregd.sock"), *methods], user=uid,
                         group=outside.gid if gid is None else gid, extra_groups=[], cwd="/", capture_output=True, text=True,
                         timeout=60)
    return [json.loads(line) for line in run.stdout.splitlines()], run.stderr


def settings(place, outside, groups=(GROUP,), mode=0o600):
    os.makedirs(place.state, mode=0o700, exist_ok=True)
    names = ", ".join(f'"{g}"' for g in groups)
    place.write("state/serve.toml", f'[serve]\nreaders = [{names}]\nfolder = "{outside.sockets}"\n', mode=mode)


def test_unblinded(place):
    """What the owner has opened before the end stays closed to readers: a worker's last words hold a score here."""
    with Outside(place) as outside:
        settings(place, outside)
        place.serve()
        place.must(OK, "preregd", "submit", rogue.program(place, ["good", "fail_later", "hang"], slots=3))
        place.wait_for(lambda: place.tasks()["mode=good,seed=1/probe"]["state"] == "done", 60, "one is done")
        place.ctl("unblind", "-r", "to see")
        rogue.release(place)
        name = "mode=fail_later,seed=1/probe"
        place.wait_for(lambda: place.tasks()[name]["state"] == "blocked", 60, "one has failed")
        expect("0.4321" in place.ctl("explain", name, "--json").stdout, "the owner does not see the last words")
        for words in (["explain", name], ["status"], ["cells"], ["programs"], ["verdict"]):
            expect("0.4321" not in outside.run(*words, "--json").stdout, f"{words}: a reader sees a score")
        place.ctl("cancel", "mode=hang,seed=1/probe")
        place.wait_for(lambda: not place.status()[0]["sealed"], 60, "unsealed")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_reading(place):
    with Outside(place) as outside:
        settings(place, outside)
        place.serve()
        place.must(OK, "preregd", "submit", rogue.program(place, ["wait", "good"]))
        place.wait_for(lambda: place.tasks()["mode=good,seed=1/probe"]["state"] == "done", 60, "one is done")
        equal((mode_of(place.state), mode_of(outside.sockets), mode_of(os.path.join(outside.sockets, "preregd.sock"))),
              (0o700, 0o710, 0o660), "modes of the state folder, the readers' folder, its socket")
        for words in (["status"], ["status", "--json"], ["cells"], ["explain", "mode=good,seed=1/probe"], ["programs"]):
            run = outside.run(*words)
            equal(run.returncode, OK, f"{words}: {run.stderr}")
        equal(outside.run("report").returncode, ANY, "the report before there is one")
        equal(outside.run("verdict").returncode, ANY, "the verdict before there is one")
        expect("0.75" not in outside.run("verdict", "--json").stdout, "a score is shown before the end")
        for words in (["pause"], ["resume"], ["unblind", "-r", "x"], ["retry"], ["cancel", "--all"], ["stop"], ["disk"],
                      ["logs", "mode=good,seed=1/probe"], ["lost", "mode=good,seed=1/probe"]):
            run = outside.run(*words)
            expect(run.returncode == ANY and "belongs to another user: you may read there" in run.stderr, f"{words}: {run}")
        # whoever comes without our client is refused by the daemon itself
        forbidden = ["pause", "resume", "retry", "cancel", "unblind", "stop", "submit", "amend", "lost", "logs", "disk", "subscribe",
                     "remove"]
        answers, said = ask(outside, ["ping", *forbidden, "ping"])
        equal(len(answers), len(forbidden) + 2, f"answers: {said}")
        expect(answers[0]["ok"] and answers[-1]["ok"], "ping is for readers")
        for method, answer in zip(forbidden, answers[1:-1]):
            equal((answer["ok"], answer["error"]["name"]), (False, "refused"), method)
        expect(place.status()[0]["state"] == "running", "a reader changed something")
        rogue.release(place)
        place.wait_finished(60)
        run = outside.run("verdict", "--json")
        equal(run.stdout, place.ctl("verdict", "--json").stdout, "the verdict")
        place.wait_for(lambda: place.status()[0]["report"], 60, "the report")
        equal(outside.run("report").stdout, os.path.join(place.program_folder(), "report", "report.html") + "\n", "the report's path")
        place.ctl("stop")
        place.daemon.wait()
        place.daemon = None
        expect(not os.path.exists(os.path.join(outside.sockets, "preregd.sock")), "the socket stays")
        for words in (["status"], ["programs"], ["verdict"]):
            equal(outside.run(*words).returncode in (NO_DAEMON, ANY), True, f"{words} without a daemon")


def test_who_may(place):
    other = next(g.gr_name for g in grp.getgrall() if g.gr_gid not in (0, grp.getgrnam(GROUP).gr_gid))
    with Outside(place) as outside:
        settings(place, outside, groups=(GROUP, other))
        place.serve()
        equal((mode_of(place.state), mode_of(outside.sockets), mode_of(os.path.join(outside.sockets, "preregd.sock"))),
              (0o700, 0o711, 0o666), "modes with two groups")
        equal(outside.run("status").returncode, OK, "by the primary group")
        equal(outside.run("status", gid=65534, groups=[65533, outside.gid]).returncode, OK, "by a supplementary one")
        many = [100000 + n for n in range(400)] + [outside.gid]
        equal(outside.run("status", gid=65534, groups=many).returncode, OK, "by one of many")
        run = outside.run("status", uid=STRANGER, gid=65534)
        expect(run.returncode == ANY and "members of the groups" in run.stderr, f"a stranger: {run}")
        answers, _ = ask(outside, ["status"], uid=STRANGER, gid=65534)
        equal(answers[0]["error"]["name"], "refused", "a stranger without our client")
        run = outside.run("status", state=place.state)
        expect(run.returncode != OK, "the state folder itself is open to a member")
        # readers have a number of connections; the owner is not kept out
        held = []
        for _ in range(READERS_MAX + 10):
            s = socket.socket(socket.AF_UNIX)
            s.connect(os.path.join(outside.sockets, "preregd.sock"))
            held.append(s)
        run = outside.run("status")
        expect("too many connections" in run.stderr, f"one reader more: {run}")
        equal(place.run("preregctl", "status").returncode, OK, "the owner, meanwhile")
        for s in held:
            s.close()
        os.remove(os.path.join(outside.sockets, "preregd.sock"))
        place.wait_for(lambda: outside.run("status").returncode == OK, 60, "the socket is made again")


def connect(folder):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect(os.path.join(folder, "preregd.sock"))
    return s


def say(s, method):
    s.sendall(json.dumps({"schema": 1, "id": 1, "method": method}).encode() + b"\n")


def hear(s):
    line = b""
    while not line.endswith(b"\n"):
        line += s.recv(65536)
    return json.loads(line)


def test_counting_is_left_to_the_owner(place):
    """`programs` walks the whole state folder: readers who ask for it all at once do not keep the owner from asking."""
    with Outside(place) as outside:
        settings(place, outside)
        place.serve()
        readers, owner = [connect(outside.sockets) for _ in range(8)], connect(place.state)
        for s in [*readers, owner]:
            say(s, "ping")
            expect(hear(s)["ok"], "ping")
        os.kill(place.daemon.pid, signal.SIGSTOP)
        for s in [*readers, owner]:
            say(s, "programs")
        os.kill(place.daemon.pid, signal.SIGCONT)
        answers = [hear(s) for s in readers]
        expect(hear(owner)["ok"], "the owner's programs")
        expect(answers[0]["ok"], f"the first reader's programs: {answers[0]}")
        refused = [a["error"]["message"] for a in answers if not a["ok"]]
        expect(refused and all("for another reader: ask again" in text for text in refused), f"the other readers': {answers}")
        for s in [*readers, owner]:
            s.close()


def test_a_folder_that_is_not_theirs(place):
    """A socket in a folder to which others may write could be anyone's."""
    with Outside(place) as outside:
        settings(place, outside)
        place.serve()
        os.chmod(outside.sockets, 0o777)
        run = outside.run("status")
        expect(run.returncode == ANY and "another user" in run.stderr, f"{run}")


def refused(place, wanted, text):
    run = place.must(wanted, "preregd", "serve", "--foreground")
    expect(text in run.stderr + run.stdout, f"wanted {text!r}: {run.stdout}{run.stderr}")
    expect(not os.path.exists(os.path.join(place.state, "preregd.sock")), "a socket is left")


def test_wrong_settings(place):
    with Outside(place) as outside:
        settings(place, outside, groups=("no-such-group",))
        refused(place, INVALID, 'no group "no-such-group"')
        settings(place, outside, mode=0o644)
        refused(place, ANY, "chmod 600")
        settings(place, outside)
        os.mkdir(outside.sockets)
        os.chown(outside.sockets, STRANGER, -1)
        refused(place, ANY, "the folder for readers")
        os.rmdir(outside.sockets)
        os.symlink("/usr", outside.sockets)
        refused(place, ANY, "the folder for readers")
        os.remove(outside.sockets)
        os.chmod(outside.folder, 0o777)
        refused(place, ANY, "the folder for readers")
        os.chmod(outside.folder, 0o755)
        place.serve()


if os.geteuid() != 0:
    lab.skip("only root can play other users")
lab.main(test_reading, test_unblinded, test_who_may, test_counting_is_left_to_the_owner, test_a_folder_that_is_not_theirs, test_wrong_settings)
