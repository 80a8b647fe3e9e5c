"""A private Slurm of some nodes on loopback for one test: munge, slurmctld and slurmd in a folder of their own, on ports that are free.

Root is not needed. Everything runs in the foreground as a child of the test and ends with it, however it ends: what Slurm detaches from
itself (slurmstepd and the jobs) is ended by a watcher that waits for the end of the test. A process is ours if its command line or its
environment names this cluster's folder; nothing else is touched.
"""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent import futures

from lib import lab

PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "scontrol": "slurm-client"}
SBIN = "/usr/sbin:/sbin"
PR_SET_PDEATHSIG = 1
CONF = """\
ClusterName=prereg
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.sock.d/s,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/save
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/pid/slurmctld
SlurmdPidFile={folder}/pid/slurmd-%n
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
PropagateResourceLimits=NONE
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=2,default_queue_depth=1000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmctldTimeout=10
SlurmdTimeout={node_timeout}
MessageTimeout=10
KillWait={kill_wait}
InactiveLimit=0
MinJobAge={min_job_age}
CompleteWait=0
BatchStartTimeout=40
GetEnvTimeout=0
UnkillableStepTimeout=30
ReturnToService=2
JobRequeue=1
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SlurmdParameters=config_overrides
"""


def missing():
    """The Debian packages that are absent here, sorted."""
    path = os.environ.get("PATH", "") + ":" + SBIN
    return sorted({package for program, package in PROGRAMS.items() if shutil.which(program, path=path) is None})


def skip_without_slurm():
    absent = missing()
    if absent:
        lab.skip(f"no Slurm here (packages {', '.join(absent)}: `ops/setup slurm` installs them)")
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        lab.skip(f"the name of this machine, {socket.gethostname()}, does not resolve, and Slurm wants it to")


def place_under_slurm(place, grid, run):
    """Replaces [run] of a program, which is the last of its sections, by one with executor = "slurm" and the text `run`."""
    with open(grid, encoding="utf-8") as f:
        before, found, after = f.read().partition("\n[run]\n")
    lab.expect(found and "\n[stage" not in after, f"[run] is not the last section of {grid}")
    place.replace(grid, f'{before}\n[run]\nexecutor = "slurm"\n{run}', 0o644)


def free_ports(n):
    """Ports of loopback that were free a moment ago."""
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def end_with_parent():
    """In a child before exec: it is killed when the test dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def ours(folder):
    """pid -> (name, command line) of every process that names the cluster's folder, but for this one."""
    found, mark = {}, (folder + "/").encode()
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as f:
                command = f.read()
            with open(f"/proc/{entry}/environ", "rb") as f:
                environment = f.read()
            with open(f"/proc/{entry}/comm", encoding="utf-8", errors="replace") as f:
                name = f.read().strip()
        except OSError:
            continue
        if mark in command or mark in environment:
            found[int(entry)] = (name, command.replace(b"\0", b" ").decode(errors="replace"))
    return found


def end_ours(folder, keep=()):
    """SIGKILL until none is left. `keep`: pids that end by themselves."""
    for _ in range(100):
        pids = [pid for pid in ours(folder) if pid not in keep]
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)


STARTER = futures.ThreadPoolExecutor(1)


class Cluster:
    """`with Cluster(place) as cluster:` gives place.env its SLURM_CONF. Nodes are called n1, n2, ...

    hidden: a folder that exists here and that the nodes see empty (needs root). partitions: lines of slurm.conf in place of the one
    partition `main` of all nodes. Other places may use it, too: attach()."""

    def __init__(self, place, nodes=3, cpus=2, memory=4000, gpus=0, partitions=None, extra="", hidden=None, node_timeout=10, kill_wait=5,
                 min_job_age=300):
        skip_without_slurm()
        self.place = place
        self.folder = os.path.realpath(place.path("slurm"))
        self.conf = os.path.join(self.folder, "slurm.conf")
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        self.hidden = hidden
        self.daemons = {}
        self.watcher = None
        for name in ("munge", "munge.sock.d", "save", "log", "pid", *(f"spool/{n}" for n in self.nodes)):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        os.chmod(self.folder, 0o755)
        os.chmod(os.path.join(self.folder, "munge"), 0o700)
        os.chmod(os.path.join(self.folder, "munge.sock.d"), 0o755)
        with open(os.open(os.path.join(self.folder, "munge", "key"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
            f.write(os.urandom(1024))
        self.settings = {"host": socket.gethostname().split(".")[0], "folder": self.folder, "node_timeout": node_timeout,
                         "kill_wait": kill_wait, "min_job_age": min_job_age, "user": user_name()}
        self.write_environment()
        self.shape = {"cpus": cpus, "memory": memory, "gpus": gpus, "extra": extra, "partitions": partitions}
        self.env = {**place.env, "SLURM_CONF": self.conf, "PATH": place.env.get("PATH", "") + ":" + SBIN}

    def write_environment(self):
        """The environment that a job with lines of setup asks for (GetEnvTimeout=0: from this file, never from a login shell of this
        machine, whose profile may take a minute where a version manager waits for its lock)."""
        home = os.path.join(self.folder, "home")
        os.makedirs(home, exist_ok=True)
        self.place.write(f"slurm/save/env_cache/{user_name()}", f"HOME={home}\nUSER={user_name()}\nPATH={os.environ['PATH']}\n")

    def write_conf(self):
        ports = free_ports(1 + len(self.nodes))
        shape = self.shape
        text = CONF.format(ports=ports, **self.settings) + shape["extra"] + "\n"
        gres = f" Gres=gpu:{shape['gpus']}" if shape["gpus"] else ""
        if shape["gpus"]:
            text += "GresTypes=gpu\n"
            for i in range(shape["gpus"]):
                self.place.write(f"slurm/gpu{i}", "")
            self.place.write("slurm/gres.conf", f"Name=gpu File={self.folder}/gpu[0-{shape['gpus'] - 1}]\n")
        for node, port in zip(self.nodes, ports[1:]):
            text += (f"NodeName={node} NodeHostname={self.settings['host']} NodeAddr=127.0.0.1 Port={port} CPUs={shape['cpus']} "
                     f"RealMemory={shape['memory']}{gres} State=UNKNOWN\n")
        text += shape["partitions"] or f"PartitionName=main Nodes={self.nodes[0]},{','.join(self.nodes[1:])} Default=YES".rstrip(",")
        text += "\n"
        self.place.write("slurm/slurm.conf", text)
        self.place.write("slurm/cgroup.conf", "CgroupPlugin=cgroup/v1\nConstrainCores=no\nConstrainRAMSpace=no\n")

    # ── daemons: "munged", "slurmctld", "n1", ... ────────────────────────────────────────────────

    def command(self, name):
        if name == "munged":
            m = os.path.join(self.folder, "munge")
            return ["munged", "--foreground", "--force", "--num-threads=4", f"--key-file={m}/key",
                    f"--socket={self.folder}/munge.sock.d/s", f"--pid-file={self.folder}/pid/munged", f"--log-file={m}/log",
                    f"--seed-file={m}/seed"]
        if name == "slurmctld":
            return ["slurmctld", "-D"]
        if self.hidden:
            return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                    'mount -t tmpfs none "$1" && exec slurmd -D -N "$2"', "sh", self.hidden, name]
        return ["slurmd", "-D", "-N", name]

    def start(self, name):
        """Starts one daemon. It ends with the thread that starts it, so that is one that lives as long as the test."""
        self.daemons[name] = STARTER.submit(self.start_here, name).result()

    def start_here(self, name):
        with open(os.path.join(self.folder, "log", f"{name}.out"), "ab") as log:
            return subprocess.Popen(self.command(name), env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    preexec_fn=end_with_parent)

    def kill(self, name):
        """SIGKILL, and waits for the end; the steps of a node go on."""
        daemon = self.daemons.pop(name, None)
        if daemon is not None:
            daemon.kill()
            daemon.wait()

    def forget_everything(self):
        """kill -9 slurmctld, and all that it has saved is lost: it knows no job, and gives out its ids from 1 on."""
        self.kill("slurmctld")
        shutil.rmtree(f"{self.folder}/save")
        self.write_environment()
        self.start("slurmctld")

    def resume_drained(self):
        """As its administrator does: a node that was given a job with the id of one that still runs there is drained by Slurm."""
        drained = self.run("sinfo", "-h", "-N", "-t", "drain", "-o", "%N").stdout.split()
        if drained:
            self.run("scontrol", "update", f"nodename={','.join(drained)}", "state=resume")

    def kill_node(self, name):
        """As if the machine of the node were switched off: its daemon, its steps and all that they run."""
        self.kill(name)
        spool = f"{self.folder}/spool/{name}/".encode()
        for _ in range(40):
            pids = self.tree([pid for pid, (process, command) in ours(self.folder).items()
                              if spool in command.encode() or (process == "slurmstepd" and self.step_is_of(pid, name))])
            if not pids:
                return
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)

    def step_is_of(self, pid, name):
        """slurmstepd keeps the log of its node's slurmd open."""
        try:
            return any(os.readlink(f"/proc/{pid}/fd/{fd}").startswith(f"{self.folder}/log/slurmd-{name}")
                       for fd in os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            return False

    def steps(self):
        """pids of all slurmstepd of this cluster."""
        return [pid for pid, (name, _) in ours(self.folder).items() if name == "slurmstepd"]

    @staticmethod
    def tree(roots):
        """The processes and all below them."""
        parents = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                        parents[int(entry)] = int(f.read().rpartition(")")[2].split()[1])
                except OSError:
                    pass
        found = set(roots)
        grown = True
        while grown:
            more = {pid for pid, parent in parents.items() if parent in found and pid not in found}
            grown = bool(more)
            found |= more
        return found

    # ── the whole ────────────────────────────────────────────────────────────────────────────────

    def run(self, *words, timeout=60):
        return subprocess.run(words, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)

    def answers(self):
        return "is UP" in self.run("scontrol", "ping").stdout

    def nodes_up(self, names=None):
        out = self.run("sinfo", "-h", "-N", "-t", "idle,alloc,mix,comp", "-o", "%N").stdout.split()
        return set(names or self.nodes) <= set(out)

    def jobs(self):
        """id -> (state, name, reason) of all jobs that Slurm still knows."""
        out = self.run("squeue", "-h", "-r", "-t", "all", "-o", "%i|%T|%j|%r").stdout
        return {line.split("|")[0]: tuple(line.split("|")[1:]) for line in out.splitlines() if line.count("|") == 3}

    def __enter__(self):
        self.watcher = subprocess.Popen([sys.executable, "-m", "lib.slurm_cluster", self.folder], cwd=lab.HERE,
                                        stdin=subprocess.PIPE, start_new_session=True)
        try:
            for last in (False, False, True):
                self.write_conf()
                self.bring_up()
                if self.daemons["slurmctld"].poll() is None or last:
                    break
                self.stop()  # somebody else got the port
            self.place.wait_for(self.answers, 60, f"slurmctld answers; {self.folder}/log", 0.2)
            self.place.wait_for(self.nodes_up, 60, f"all nodes are up; {self.folder}/log", 0.2)
        except BaseException:
            self.close()
            raise
        self.attach(self.place)
        return self

    def attach(self, place):
        place.env["SLURM_CONF"] = self.conf
        place.env["PATH"] = self.env["PATH"]

    def bring_up(self):
        self.start("munged")
        self.place.wait_for(lambda: os.path.exists(f"{self.folder}/munge.sock.d/s"), 20, "munged listens")
        self.start("slurmctld")
        for node in self.nodes:
            self.start(node)
        time.sleep(0.2)

    def stop(self):
        for name in [*self.nodes, "slurmctld", "munged"]:
            self.kill(name)
        end_ours(self.folder, keep=(self.watcher.pid,))

    def close(self):
        self.stop()
        self.watcher.stdin.close()
        self.watcher.wait()

    def __exit__(self, kind, error, trace):
        if kind is not None and not issubclass(kind, SystemExit):
            self.print_logs()
        self.close()

    def print_logs(self, n=8):
        folder = os.path.join(self.folder, "log")
        for name in sorted(os.listdir(folder)):
            if not name.endswith(".out"):
                with open(os.path.join(folder, name), errors="replace") as f:
                    print(f"-- {name}\n" + "".join([line for line in f if "mpi" not in line.lower()][-n:]), end="")


def user_name():
    import pwd
    return pwd.getpwuid(os.getuid()).pw_name


def watch(folder):
    """The watcher: waits until the test is gone, however it ended, and ends what is left."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdin.buffer.read()
    end_ours(folder)


if __name__ == "__main__":
    watch(sys.argv[1])
