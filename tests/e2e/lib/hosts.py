"""Two hosts on one machine: a UTS namespace for each, whose hostname is the host's, and one mount of a shared folder for each. With
lagfs (tests/tools) a change of one is seen by the other seconds later and a lock proves nothing between them; with the kernel's NFS
on loopback each mount has a cache of its own."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time

from lib import lab
from lib.lab import OK, expect

DELAY_MS = 5000


class Host:
    def __init__(self, place, name, mount):
        self.place = place
        self.name = name
        self.mount = mount
        self.state = os.path.join(mount, "state")
        self.local = place.path(f"local-{name}")
        self.env = {**place.env, "PREREGD_STATE": self.state, "PREREGD_DATABASE": self.local}
        self.daemon = None

    def words(self, name, *arguments):
        return ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name,
                os.path.join(self.place.bin, name), *arguments]

    def run(self, name, *arguments, timeout=240):
        return subprocess.run(self.words(name, *arguments), env=self.env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=timeout)

    def must(self, wanted, name, *arguments):
        run = self.run(name, *arguments)
        if run.returncode != wanted:
            raise lab.Failed(f"{self.name}: {name} {' '.join(arguments)}: exit {run.returncode}, wanted {wanted}\n"
                             f"{run.stdout[-2000:]}\n{run.stderr[-2000:]}\n{self.log()[-3000:]}")
        return run

    def json(self, *arguments):
        return json.loads(self.must(OK, "preregctl", *arguments, "--json").stdout)

    def start(self, *options):
        """A daemon; does not wait until it answers."""
        with open(self.place.path(f"serve-{self.name}.out"), "ab") as out:
            self.daemon = subprocess.Popen(self.words("preregd", "serve", *options), env=self.env, cwd="/",
                                           stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def answers(self):
        return self.run("preregctl", "status", "--json").returncode == OK

    def serve(self, *options, seconds=60):
        self.start(*options)
        self.place.wait_for(lambda: self.answers() or self.daemon.poll() is not None, seconds, f"the daemon of {self.name}")
        expect(self.daemon.poll() is None, f"the daemon of {self.name} ended with {self.daemon.returncode}: {self.log()[-3000:]}")

    def take_over(self, answer, seconds=60):
        """`serve --take-over` at a terminal at which a person types `answer`."""
        master, slave = pty.openpty()
        self.daemon = subprocess.Popen(self.words("preregd", "serve", "--take-over"), env=self.env, cwd="/", stdin=slave,
                                       stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        said = b""
        end = time.monotonic() + seconds
        while time.monotonic() < end and b"[yes/no]" not in said and self.daemon.poll() is None:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    said += os.read(master, 4096)
                except OSError:
                    break
        if b"[yes/no]" in said:
            os.write(master, answer.encode() + b"\n")
        return said.decode(errors="replace"), master

    def signal(self, number):
        os.kill(self.daemon.pid, number)

    def end(self):
        self.daemon.kill()
        self.daemon.wait()

    def wait_end(self, seconds):
        try:
            return self.daemon.wait(lab.PATIENCE * seconds)
        except subprocess.TimeoutExpired as error:
            raise lab.Failed(f"the daemon of {self.name} goes on: {self.log()[-3000:]}") from error

    def log(self):
        try:
            with open(os.path.join(self.local, "preregd.log"), errors="replace") as f:
                return f.read()
        except OSError:
            return ""


def done(*words):
    """Runs a command of the system; what it says of a failure, else None."""
    try:
        run = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{words[0]}: {error}"
    return None if run.returncode == 0 else f"{' '.join(words[:2])}: {(run.stderr or run.stdout).strip()[:200]}"


class Lag:
    """Two mounts of tests/tools/lagfs."""

    def __init__(self, place, bin_folder):
        self.place = place
        tool = os.path.join(bin_folder, "lagfs")
        if not os.path.exists(tool):
            lab.skip("lagfs is not built: libfuse3-dev is not installed")
        if not os.path.exists("/dev/fuse") or shutil.which("fusermount3") is None:
            lab.skip("no /dev/fuse or no fusermount3")
        self.tool = subprocess.Popen([tool, place.path("backing"), str(DELAY_MS), place.path("a"), place.path("b")],
                                     stdout=subprocess.PIPE)
        if self.tool.stdout.readline() != b"mounted\n":
            lab.skip("lagfs cannot mount here")
        self.pid = self.tool.pid

    def close(self):
        for name in ("a", "b"):
            subprocess.run(["fusermount3", "-u", "-z", self.place.path(name)], check=False, capture_output=True)
        try:
            self.tool.wait(5)
        except subprocess.TimeoutExpired:  # something still has a file open there
            self.tool.kill()
            self.tool.wait()
        self.tool.stdout.close()


class Nfs:
    """Two mounts of one NFS export of this machine, without a cache in common. Uses the machine's server if it has one, else starts
    one for NFSv4 alone. What cannot be done here is the reason to skip."""
    pid = 0

    def __init__(self, place, _):
        self.place, self.undo = place, []
        with open("/proc/filesystems", encoding="utf-8") as f:
            known = {line.split()[-1] for line in f}
        missing = [name for name in ("nfs4", "nfsd") if name not in known]
        if missing:
            lab.skip(f"this kernel has no {' and no '.join(missing)} (/proc/filesystems)")
        tools = [t for t in ("exportfs", "rpc.nfsd", "rpc.mountd", "mount.nfs4") if shutil.which(t) is None]
        if tools or os.geteuid() != 0:
            lab.skip(f"no {tools[0]}: nfs-kernel-server is not installed" if tools else "only root may export and mount")
        try:
            self.open()
        except BaseException:
            self.close()
            raise

    def must(self, *words, undo=None):
        why = done(*words)
        if why is not None:
            lab.skip(f"NFS cannot be used here: {why}")
        if undo is not None:
            self.undo.append(undo)

    def start_server(self):
        if not os.path.exists("/proc/fs/nfsd/threads"):
            self.must("mount", "-t", "nfsd", "nfsd", "/proc/fs/nfsd", undo=lambda: done("umount", "/proc/fs/nfsd"))
        with open("/proc/fs/nfsd/threads", encoding="utf-8") as f:
            if int(f.read()) > 0:
                return
        mountd = subprocess.Popen(["rpc.mountd", "-F", "-N", "2", "-N", "3"], stderr=subprocess.DEVNULL)
        self.undo.append(lambda: (mountd.kill(), mountd.wait()))
        self.must("rpc.nfsd", "-N", "3", "-G", "10", "-L", "10", "4", undo=lambda: done("rpc.nfsd", "0"))

    def open(self):
        self.start_server()
        export = f"127.0.0.1:{self.place.path('backing')}"
        options = f"rw,no_root_squash,no_subtree_check,insecure,sync,fsid={os.getpid()}"
        self.must("exportfs", "-i", "-o", options, export, undo=lambda: done("exportfs", "-u", export))
        for name in ("a", "b"):
            to = self.place.path(name)
            self.must("mount", "-t", "nfs4", "-o", f"nosharecache,actimeo={DELAY_MS // 1000}", export, to,
                      undo=lambda to=to: done("umount", "-l", to))

    def close(self):
        for undo in reversed(self.undo):
            undo()


class Hosts:
    """`with Hosts(place, bin) as (a, b)`: skips with a reason where the file system cannot be had."""
    kind = Lag

    def __init__(self, place, bin_folder):
        self.place = place
        if subprocess.run(["unshare", "--uts", "true"], capture_output=True, check=False).returncode != 0:
            lab.skip("not allowed to make a UTS namespace")
        for name in ("backing", "a", "b"):
            os.mkdir(place.path(name), 0o700)
        self.mounts = self.kind(place, bin_folder)

    def __enter__(self):
        self.hosts = [Host(self.place, name, self.place.path(name)) for name in ("a", "b")]
        return self.hosts

    def __exit__(self, kind, error, trace):
        if kind is not None and not issubclass(kind, SystemExit):
            for host in self.hosts:
                print(f"--- log of {host.name}\n{host.log()[-4000:]}")
        for host in self.hosts:
            if host.daemon is not None and host.daemon.poll() is None:
                host.daemon.send_signal(signal.SIGCONT)
                host.end()
        self.end_workers()
        self.mounts.close()

    def end_workers(self):
        """Shims and workers run from objects in the mounts, and have their folders there."""
        for _ in range(100):
            found = []
            for entry in os.listdir("/proc"):
                if entry.isdigit():
                    try:
                        places = [os.readlink(f"/proc/{entry}/exe"), os.readlink(f"/proc/{entry}/cwd")]
                    except OSError:
                        continue
                    if any(p.startswith(self.place.folder + "/") for p in places) and int(entry) != self.mounts.pid:
                        found.append(int(entry))
            if not found:
                return
            for pid in found:
                self.place.kill(pid)
            time.sleep(0.05)
