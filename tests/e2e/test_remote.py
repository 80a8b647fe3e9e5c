#!/usr/bin/env python3
"""preregctl --host: the same command on another machine over ssh. A script in the place of ssh runs it here, as sshd would:
by a login shell, in an environment of its own; with an sshd the real one does."""

import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys

from lib import lab
from lib import rogue
from lib.lab import ANY, NO_DAEMON, OK, USAGE, equal, expect

# Notes how it was called, then does what sshd does with the command.
STAND_IN = """#!/bin/sh
printf '%s\\n' "$@" > "{notes}"
while [ "$1" != "--" ]; do shift; done
[ "$2" != "gone" ] || {{ echo "ssh: no route to host gone" >&2; exit 255; }}
exec env -i HOME="{home}" PATH="{path}" PREREGD_STATE="{state}" "{shell}" -c "$3"
"""


def stand_in(place, shell="/bin/sh", path=None):
    text = STAND_IN.format(notes=place.path("ssh.args"), home=place.folder, path=path or f"{place.bin}:/usr/bin:/bin",
                           state=place.state, shell=shell)
    place.env["PREREGD_SSH"] = place.write("ssh", text, mode=0o755)


def here_and_there(place, *words, host="box", without=("state", "missing")):
    """The command here and on the host: the same output and exit code. The local state folder of the second is an empty one."""
    here = place.run("preregctl", *words)
    there = place.run("preregctl", "--host", host, *words, env={**place.env, "PREREGD_STATE": place.path(*without)})
    for what in ("returncode", "stdout", "stderr"):
        equal(getattr(there, what), getattr(here, what), f"{what} of {words}")
    return here


# As between ssh and sshd: the command is in a session of its own behind a pipe, and is not signalled when ssh ends.
BEHIND_A_PIPE = """#!/usr/bin/env python3
import os, subprocess, sys
child = subprocess.Popen(["/bin/sh", "-c", sys.argv[4]], env={{"PATH": "{path}", "PREREGD_STATE": "{state}"}}, stdout=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, start_new_session=True)
while data := os.read(child.stdout.fileno(), 65536):
    os.write(1, data)
sys.exit(child.wait())
"""


def still(text):
    """Without what passes between two questions."""
    return re.sub(r"\d+(\.\d+)? (ms|s|min|h)\b", "T", text)


def run_program(place, modes):
    place.serve()
    place.must(OK, "preregd", "submit", rogue.program(place, modes))


def test_equal_answers(place):
    stand_in(place)
    run_program(place, ["good", "bad_parameters"])
    place.wait_for(lambda: all(t["state"] in ("done", "blocked") for t in place.tasks().values()), 60, "all have ended")
    place.wait_finished(60)
    for words in (["cells"], ["cells", "--json"], ["verdict"], ["verdict", "--json"], ["report"], ["logs", "mode=good,seed=1/probe"],
                  ["explain", "mode=good,seed=1/probe", "--json"], ["explain", "nonsense"], ["explain", "nonsense", "--json"],
                  ["curves"], ["version"], ["retry", "x/y", "-r", "it's $(a) \"test\"; `b` \\ *\n!"], ["status", "nonsense"]):
        here_and_there(place, *words)
    there = place.ctl("--host=box", "status")
    equal(still(there.stdout), still(place.ctl("status").stdout), "status")
    with open(place.path("ssh.args"), encoding="utf-8") as f:
        equal(f.read().split("\n")[:3], ["-nT", "--", "box"], "how ssh was called")


def test_words_reach_the_command(place):
    """No shell on the way reads anything into a word; the journal has the reason as it was typed."""
    run_program(place, ["wait", "good"])
    reason = "it's $(touch pwned) \"x\"; `id` \\ * ~ && | > f"
    for n, shell in enumerate(s for s in ("/bin/sh", "/bin/bash", "/usr/bin/zsh", "/usr/bin/fish", "/bin/tcsh") if os.path.exists(s)):
        stand_in(place, shell)
        place.ctl("pause", "--host", "box", "-r", f"{n} {reason}")
        with open(os.path.join(place.program_folder(), "journal.jsonl"), encoding="utf-8") as f:
            equal([r["detail"] for r in map(json.loads, f) if r["event"] == "paused"][n], f"{n} {reason}", f"the reason, by {shell}")
        place.ctl("resume", "--host", "box")
    expect(not os.path.exists(place.path("pwned")), "a word was executed")


def test_watch_and_follow(place):
    text = BEHIND_A_PIPE.format(path=f"{place.bin}:/usr/bin:/bin", state=place.state)
    place.env["PREREGD_SSH"] = place.write("ssh", text, mode=0o755)
    run_program(place, ["wait", "good"])
    place.wait_for(lambda: place.tasks()["mode=wait,seed=1/probe"]["state"] == "running", 60, "it runs")
    env = {**place.env, "PREREGD_HOST": "box", "PREREGD_STATE": place.path("none")}
    for words in (["logs", "-f", "mode=wait,seed=1/probe"], ["status", "-w", "--interval", "100ms"]):
        follow = subprocess.Popen([os.path.join(place.bin, "preregctl"), *words], env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect(follow.stdout.readline() != "", f"{words} prints nothing")
        running = [pid for pid, name in place.processes().items() if name == "preregctl"]
        equal(len(running), 2, f"processes of {words}: here and there")
        follow.send_signal(signal.SIGKILL)  # whoever asked is gone: so is what runs there
        follow.wait()
        follow.stdout.close()
        place.wait_for(lambda: "preregctl" not in place.processes().values(), 10, f"the command of {words} ends there")


def test_refused(place):
    stand_in(place)
    place.write("grid.toml", "")
    for words in (["submit", "grid.toml"], ["check", "grid.toml"], ["lock", "grid.toml"], ["export"], ["rebuild"], ["verify", "x"],
                  ["rerun", "c"], ["amend", "grid.toml"], ["init"]):
        run = place.ctl("--host", "box", *words, wanted=USAGE)
        expect("works on files of the machine where it runs: run it on box (`ssh -t box preregctl …`)" in run.stderr, run.stderr)
        expect(not os.path.exists(place.path("ssh.args")), f"ssh was started for {words}")
    env = {**place.env, "PREREGD_HOST": "box"}
    place.must(USAGE, "preregctl", "submit", "grid.toml", env=env)
    run = place.must(USAGE, "preregd", "submit", "grid.toml", env=env)
    expect("run it on box (`ssh -t box preregd submit" in run.stderr, run.stderr)
    place.must(USAGE, "preregctl", "export", env=env)
    for words in (["version"], ["help"], ["init", "made"]):  # these concern no state folder
        place.must(OK, "preregctl", *words, env=env)
    for host in ("-oProxyCommand=id", "", "a b", "x" * 300):
        run = place.ctl("--host", host, "status", wanted=USAGE)
        expect("cannot be a host" in run.stderr, run.stderr)
    place.ctl("status", "--host", wanted=USAGE)
    place.ctl("--host", "a", "status", "--host", "b", wanted=USAGE)
    answer = place.ctl_json("--host", "box", "lock", "x", wanted=USAGE)
    equal(answer["error"]["exit_code"], USAGE, "as JSON")


def test_what_fails_there(place):
    stand_in(place)
    here_and_there(place, "status", without=("state",))  # no daemon, on either side
    run = place.ctl("--host", "gone", "status", wanted=NO_DAEMON)
    expect("no route to host" in run.stderr and "gone cannot be reached" in run.stderr, run.stderr)
    stand_in(place, path="/usr/bin:/bin")
    run = place.ctl("--host", "box", "status", wanted=ANY)
    expect("box has no preregctl in the PATH" in run.stderr, run.stderr)
    place.write("old/preregctl", "#!/bin/sh\necho preregctl 0.0.7\n", mode=0o755)
    stand_in(place, path=f"{place.path('old')}:/usr/bin:/bin")
    run = place.ctl("--host", "box", "status", wanted=ANY)
    expect("preregctl 0.0.7\n" in run.stderr and "another version" in run.stderr, run.stderr)
    equal(place.ctl_json("--host", "box", "status", wanted=ANY)["error"]["exit_code"], ANY, "as JSON")
    place.env["PREREGD_SSH"] = place.path("missing")
    run = place.ctl("--host", "box", "status", wanted=ANY)
    expect("PREREGD_SSH" in run.stderr, run.stderr)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_real_ssh(place):
    """The real client and server on loopback, with keys of their own."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if not sshd or not shutil.which("ssh"):
        lab.skip("no sshd here")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", place.path(name)], check=True)
    shutil.copy(place.path("user.pub"), place.path("keys"))
    port = free_port()
    place.write("sshd_config", f"""Port {port}
ListenAddress 127.0.0.1
HostKey {place.path("host")}
AuthorizedKeysFile {place.path("keys")}
PidFile {place.path("sshd.pid")}
StrictModes no
UsePAM no
SetEnv PATH={place.bin}:/usr/bin:/bin PREREGD_STATE={place.state} HOME={place.folder}
""")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)
    place.write("ssh_config", f"""Host box
  HostName 127.0.0.1
  Port {port}
  User {getpass.getuser()}
  IdentityFile {place.path("user")}
  IdentitiesOnly yes
  UserKnownHostsFile {place.path("known")}
  StrictHostKeyChecking accept-new
  LogLevel ERROR
""")
    place.env["PREREGD_SSH"] = place.write("ssh", f'#!/bin/sh\nexec ssh -F "{place.path("ssh_config")}" "$@"\n', mode=0o755)
    server = subprocess.Popen([sshd, "-D", "-e", "-f", place.path("sshd_config")], stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
    try:
        run_program(place, ["good", "bad_parameters"])
        place.wait_finished(60)
        for words in (["cells"], ["verdict", "--json"], ["logs", "mode=good,seed=1/probe"], ["explain", "it's a \"nonsense\""]):
            here_and_there(place, *words)
        run = place.ctl("--host", "nowhere.invalid", "status", wanted=NO_DAEMON)
        expect("nowhere.invalid cannot be reached" in run.stderr, run.stderr)
    finally:
        server.terminate()
        server.wait()
        if server.returncode not in (0, -signal.SIGTERM, 255):
            sys.stdout.write(server.stderr.read())


lab.main(test_equal_answers, test_words_reach_the_command, test_watch_and_follow, test_refused, test_what_fails_there, test_real_ssh)
