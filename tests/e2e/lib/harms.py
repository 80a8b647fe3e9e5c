"""The harms themselves. Each has a scene with a fresh state folder, does its harm at a moment that it draws, puts right what a person
would put right, and says in a few words what it did; the program is then brought to its end and held against the undisturbed one."""

import errno
import json
import os
import shutil
import signal
import subprocess
import time

from lib.disks import Ext4, SmallDisk
from lib.harm import NotReached
from lib.lab import OK, equal, expect

HOWS = ("kill", "fail", "quota", "eio", "short")
N_TASKS = 8
DAY = 86400


def begun(scene):
    scene.place.serve()
    scene.submit()


def calls(chance, most):
    """Which call is the one; near ones more often, for most runs of most processes have few."""
    return chance.randint(1, most) if chance.random() < 0.5 else int(most ** chance.random())


# ── calls that fail, are short, or are the last ──────────────────────────────────────────────────


def daemon_writes(scene, chance):
    how, nth = chance.choice(HOWS), calls(chance, 400)
    scene.arm(nth)
    scene.serve_hurt(how)
    scene.wait_fired(f"{how} at call {nth}")
    if chance.random() < 0.5:
        time.sleep(chance.uniform(0, 0.3))
        scene.gone()
        scene.place.kill_daemon()
    return f"{how} at call {nth}: {scene.fired()}"


def daemon_read_only(scene, chance):
    """Every write of the daemon fails for a while, whatever it has open."""
    begin, seconds = chance.randint(20, 300), chance.uniform(0.1, 2.5)
    scene.arm(begin)
    scene.serve_hurt("readonly")
    scene.wait_fired(f"call {begin}")
    time.sleep(seconds)
    scene.disarm()
    return f"read-only for {seconds:.1f} s from call {begin} on: {scene.fired()}"


def process_writes(scene, chance, name):
    """One of the calls that such a process makes, so that a run that still has one to start has the fault."""
    how, when, (most, most_short) = chance.choice(HOWS), chance.choice([0, 0, 1, 2, 4, 6]), scene.calls_of(name)
    nth = chance.randint(1, most_short if how == "short" else most)
    drawn = f"{how} at call {nth} of a {name} after {when} tasks"
    scene.serve_hurt(how, name)
    scene.wait_done(when)
    scene.arm(nth)
    scene.wait_fired(drawn)
    return f"{drawn}: {scene.fired()}"


def shim_writes(scene, chance):
    return process_writes(scene, chance, "prereg-shim")


def report_writes(scene, chance):
    return process_writes(scene, chance, "prereg-report")


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


def hurt_command(scene, chance, most, *words, process=None):
    """Runs preregctl with a fault, in it or in the `process` that it starts; its exit code and what happened. NotReached when there was none."""
    how, nth = chance.choice(HOWS), calls(chance, most)
    scene.arm(nth)
    run = scene.place.run("preregctl", *words, env=scene.hurt(how, process))
    scene.disarm()
    if not scene.fired():
        raise NotReached(f"{how} at call {nth} of {words[0]}")
    expect(run.returncode >= 0 or (how == "kill" and run.returncode == -9),
           f"{words[0]}, {how} at call {nth} ({scene.fired()}): {run.returncode} {run.stderr}")
    return run.returncode, f"{words[0]}: {how} at call {nth}: {scene.fired()}: exit {run.returncode}"


def lock(scene, chance):
    """What is there afterwards is no lock, the one from before, or a whole one; a second try makes the same root."""
    place, path = scene.place, scene.grid + ".lock"
    os.rename(path, path + ".kept")
    if chance.random() < 0.5:
        place.edit(scene.grid, "Does any", "Would any")
        place.ctl("lock", scene.grid)
        place.edit(scene.grid, "Would any", "Does any")
    try:
        code, done = hurt_command(scene, chance, 40, "lock", scene.grid, "--replace")
        there = os.path.exists(path) and place.run("preregctl", "lock", scene.grid, "--verify").returncode == OK
        expect(code != OK or there, f"{done}: exit 0, and no lock that fits")
        if not there:
            place.ctl("lock", scene.grid, "--replace")
        with open(path, encoding="utf-8") as made, open(path + ".kept", encoding="utf-8") as kept:
            equal(json.load(made)["root"], json.load(kept)["root"], "the root")
    finally:
        os.replace(path + ".kept", path)
    return done


def rebuild(scene, chance):
    """In the middle of a run, the database lost or not: whatever rebuild leaves, the next one makes whole, or nothing needs it."""
    place = scene.place
    begun(scene)
    scene.wait_done(chance.randint(0, N_TASKS))
    place.kill_daemon()
    if chance.random() < 0.5:
        place.end_all()
    lost = chance.random() < 0.5
    if lost:
        for name in ("preregd.db", "preregd.db-wal", "preregd.db-shm"):
            if os.path.exists(os.path.join(place.state, name)):
                os.remove(os.path.join(place.state, name))
    code, done = hurt_command(scene, chance, 60, "rebuild")
    if (lost and code != OK) or chance.random() < 0.3:
        place.ctl("rebuild")
    return done + (", database lost" if lost else "")


def export(scene, chance):
    """No receipt under its name, or a whole one."""
    place = scene.place
    begun(scene)
    scene.finish()
    out = place.path(f"out-{scene.number}")
    program = place.program_folder()
    code, done = hurt_command(scene, chance, 60, "export", program, "--out", out)
    found = [n for n in (os.listdir(out) if os.path.isdir(out) else []) if n.endswith("-receipt") or n.endswith(".tar")]
    for name in found:
        place.ctl("verify", os.path.join(out, name))
    expect(code != OK or len(found) == 2, f"{done}: exit 0 and {found}")
    shutil.rmtree(out, ignore_errors=True)
    return done


def report(scene, chance):
    begun(scene)
    scene.finish()
    _, done = hurt_command(scene, chance, 30, "report", process="prereg-report")
    scene.place.ctl("report")
    return done


def hurt_in(scene, chance, n_done, *words, edit=None):
    """A daemon whose Nth call after `words` were sent goes wrong; a living one is left alone, or killed a little later."""
    how, nth = chance.choice(HOWS), calls(chance, 40)
    scene.serve_hurt(how)
    scene.wait_done(n_done)
    if edit:
        scene.place.edit(scene.grid, *edit)
    scene.arm(nth)
    run = scene.place.run(*words)
    end = time.monotonic() + 1
    while not scene.fired() and not scene.gone() and time.monotonic() < end:
        time.sleep(0.02)
    if not scene.fired():
        raise NotReached(f"{how} at call {nth} of {words[1]}")
    if chance.random() < 0.5:
        scene.gone()
        scene.place.kill_daemon()
    return f"{words[1]}: {how} at call {nth}: {scene.fired()}: exit {run.returncode}"


def submit(scene, chance):
    return hurt_in(scene, chance, None, "preregd", "submit", scene.grid)


def pause(scene, chance):
    return hurt_in(scene, chance, chance.randint(0, N_TASKS - 2), "preregctl", "pause")


def resume(scene, chance):
    begun(scene)
    scene.place.ctl("pause")
    scene.place.kill_daemon()
    return hurt_in(scene, chance, 0, "preregctl", "resume")


def unblind(scene, chance):
    return hurt_in(scene, chance, chance.randint(0, N_TASKS - 2), "preregctl", "unblind", "--reason", "to see whether it can")


def amend(scene, chance):
    """It took effect, or it is on its way, or it can be repeated."""
    place = scene.place
    place.write("ran.log.hold", "")
    begun(scene)
    place.kill_daemon()
    words = ("preregctl", "amend", scene.grid, "--reason", "the machine was measured again")
    done = hurt_in(scene, chance, 0, *words, edit=("<= 1.20", "<= 1.30"))
    scene.amended = True
    scene.wait_served(lambda now: now["amendments"] == 1 or place.run(*words).returncode == OK, f"{done}: the amendment")
    os.remove(place.path("ran.log.hold"))
    return done


def retry(scene, chance):
    """Of a training whose input was bad, while the others are held."""
    place = scene.place
    place.write("ran.log.hold", "")
    place.write("ran.log.broken", "arm=a,seed=2")
    begun(scene)
    place.wait_for(lambda: place.status()[0]["tasks"]["blocked"] == 1, 300, "bad input blocks it")
    os.remove(place.path("ran.log.broken"))
    place.kill_daemon()
    done = hurt_in(scene, chance, 0, "preregctl", "retry", "arm=a,seed=2/train")
    scene.wait_served(lambda now: now["tasks"]["blocked"] == 0 or place.run("preregctl", "retry").returncode == OK, f"{done}: retried")
    os.remove(place.path("ran.log.hold"))
    return done


# ── clocks ───────────────────────────────────────────────────────────────────────────────────────


def clocks(scene, chance):
    """The wall clock jumps, ahead and back, by seconds to years, with a daemon that is killed or goes on; then it is right again."""
    place, outside = scene.place, scene.place.env
    jumps = []

    def jump(seconds):
        os.rename(place.write("shift.new", str(seconds)), place.path("shift"))
    options = scene.hurt("none")["ASAN_OPTIONS"]
    jump(0)
    place.env = {**outside, "LD_PRELOAD": os.path.join(place.bin, "clock_shift.so"), "CLOCK_SHIFT_FILE": place.path("shift"), "ASAN_OPTIONS": options}
    try:
        begun(scene)
        for _ in range(chance.randint(1, 4)):
            jumps.append(chance.choice([-1, 1]) * chance.choice([1, 2, 60, 400, 3600, DAY, 400 * DAY, 10000 * DAY]))
            jump(jumps[-1])
            time.sleep(chance.uniform(0, 0.4))
            what = chance.choice(["daemon", "worker", "nothing", "nothing"])
            if what == "daemon":
                place.kill_daemon()
                place.serve_without_waiting()
            elif what == "worker":
                kill_one(scene, chance)
        jump(0)
        scene.finish()
        scene.check_receipt()
    finally:
        place.kill_daemon()
        place.env = outside
    return f"clock off by {jumps} s"


def kill_one(scene, chance):
    """A worker or a shim, within its task's budget of crashes."""
    pids = [pid for pid, name in scene.place.processes().items() if name not in ("preregd", "preregctl", "prereg-report")]
    if pids and scene.n_kills < 2:
        scene.n_kills += 1
        scene.place.kill(chance.choice(pids))


# ── disks ────────────────────────────────────────────────────────────────────────────────────────


def power(scene, chance, lose):
    """An ext4 file system under the state folder ends at some moment; whatever ran ends with it, and the machine boots."""
    disk = Ext4(scene.place)
    scene.after.callback(disk.unmount)
    scene.after.callback(scene.place.end_all)
    n_done = chance.randint(0, N_TASKS)
    begun(scene)
    scene.wait_done(n_done)
    time.sleep(chance.uniform(0, 0.1))
    done = lose(disk)
    time.sleep(chance.choice([0, 0, 0.2, 1]))
    scene.gone()
    scene.place.kill_daemon()
    scene.place.end_all()
    disk.again()
    scene.boot.again()
    return f"{done} after {n_done} tasks"


def shutdown(scene, chance):
    how = chance.choice([0, 1, 2, 2])

    def lose(disk):
        disk.shut_down(how)
        return f"ext4 shut down ({how})"
    return power(scene, chance, lose)


def damage(scene, chance):
    def lose(disk):
        disk.make_read_only()
        return "ext4 made read-only by an error"
    return power(scene, chance, lose)


def small(scene, folder, options=""):
    """A small disk there until the run is over."""
    return scene.after.enter_context(SmallDisk(scene.place, folder, size_mib=64, options=options))


def full(scene, chance, disk, fill, empty):
    """Full at some moment, with the daemon killed meanwhile or not; then there is room again."""
    n_done = chance.randint(0, N_TASKS - 1)
    begun(scene)
    scene.wait_done(n_done)
    left = fill(disk)
    time.sleep(chance.uniform(0, 2))
    killed = chance.random() < 0.3
    if killed:
        scene.gone()
        scene.place.kill_daemon()
        scene.place.serve_without_waiting()
        time.sleep(chance.uniform(0, 1))
    scene.note_pause()
    empty(disk)
    return f"{left} after {n_done} tasks" + (", daemon killed" if killed else "")


def fill_bytes(chance):
    left = chance.choice([0, 0, 4096, 100_000, 3 << 20])

    def fill(disk):
        disk.fill(left)
        expect(os.statvfs(disk.folder).f_bavail * 4096 <= left + (4 << 20), "the disk is not full")
        return f"{left} bytes left on {os.path.basename(disk.folder)}"
    return fill


def full_state(scene, chance):
    return full(scene, chance, small(scene, scene.place.state), fill_bytes(chance), lambda disk: os.remove(disk.filler()))


def full_work(scene, chance):
    return full(scene, chance, small(scene, scene.work), fill_bytes(chance), lambda disk: os.remove(disk.filler()))


def no_inodes(scene, chance):
    def fill(disk):
        os.mkdir(disk.filler())
        try:
            for i in range(100_000):
                os.mknod(os.path.join(disk.filler(), str(i)))
        except OSError as error:
            equal(error.errno, errno.ENOSPC, "what ends the filling")
        return "no inode left"
    folder = chance.choice([scene.work, scene.place.state])
    disk = small(scene, folder, ",nr_inodes=900")
    return f"{os.path.basename(folder)}: " + full(scene, chance, disk, fill, lambda d: shutil.rmtree(d.filler()))


def read_only_work(scene, chance):
    """The disk of the work folder is remounted read-only in a moment in which nothing has a file of it open for writing."""
    disk = small(scene, scene.work)

    def remount(options):
        return subprocess.run(["mount", "-o", f"remount,{options}", disk.folder], capture_output=True).returncode == 0

    n_done = chance.randint(0, N_TASKS - 2)
    begun(scene)
    scene.wait_done(n_done)
    end = time.monotonic() + 20
    while not remount("ro"):
        if scene.progress() == N_TASKS or time.monotonic() > end:
            raise NotReached(f"read-only after {n_done} tasks")
    time.sleep(chance.uniform(0, 3))
    scene.note_pause()
    expect(remount("rw"), "it cannot be remounted")
    return f"read-only work folder after {n_done} tasks"


# ── moved folders ────────────────────────────────────────────────────────────────────────────────


def moved(scene, chance, folder):
    n_done, alive = chance.randint(0, N_TASKS - 1), chance.random() < 0.6
    begun(scene)
    scene.wait_done(n_done)
    time.sleep(chance.uniform(0, 0.2))
    if not alive:
        scene.place.kill_daemon()
    os.rename(folder, folder + "-moved")
    time.sleep(chance.choice([0, 0.1, 0.5, 1, 3]))
    expect(not os.path.exists(folder), f"{folder} was made again while it was elsewhere")
    os.rename(folder + "-moved", folder)
    return f"{os.path.basename(folder)} moved after {n_done} tasks, daemon {'alive' if alive else 'dead'}"


def moved_state(scene, chance):
    return moved(scene, chance, scene.place.state)


def moved_work(scene, chance):
    return moved(scene, chance, scene.work)


def processes(scene, chance):
    """kill -9 of the daemon and of what it started, and shims that are stopped for a while."""
    begun(scene)
    n_kills = 0
    for _ in range(chance.randint(1, 6)):
        time.sleep(chance.uniform(0, 0.3))
        what = chance.choice(["daemon", "one", "stop"])
        if what == "daemon":
            scene.gone()
            scene.place.kill_daemon()
            scene.place.serve_without_waiting()
            n_kills += 1
        elif what == "one":
            kill_one(scene, chance)
        else:
            stop_one(scene, chance)
    return f"the daemon killed {n_kills} times, {scene.n_kills} others"


def stop_one(scene, chance):
    pids = [pid for pid, name in scene.place.processes().items() if name == "prereg-shim"]
    if not pids:
        return
    pid = chance.choice(pids)
    try:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(chance.uniform(0, 0.5))
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


# name -> (the harm, what it needs: "root" mounts of its own, "ext4" such a file system in them, "work" a work folder elsewhere)
HARMS = {
    "daemon_writes": (daemon_writes, ""), "daemon_read_only": (daemon_read_only, ""), "shim_writes": (shim_writes, ""),
    "report_writes": (report_writes, ""), "processes": (processes, ""), "clocks": (clocks, ""),
    "submit": (submit, ""), "amend": (amend, ""), "retry": (retry, ""), "pause": (pause, ""), "resume": (resume, ""),
    "unblind": (unblind, ""), "lock": (lock, ""), "rebuild": (rebuild, ""), "export": (export, ""), "report": (report, ""),
    "shutdown": (shutdown, "ext4"), "damage": (damage, "ext4"), "full_state": (full_state, "root"),
    "full_work": (full_work, "root work"), "no_inodes": (no_inodes, "root work"), "read_only_work": (read_only_work, "root work"),
    "moved_state": (moved_state, ""), "moved_work": (moved_work, "work"),
}
