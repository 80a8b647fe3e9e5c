"""Small file systems for tests, in memory or in a file: mounted, filled, broken. They need root."""

import ctypes
import errno
import fcntl
import os
import struct
import subprocess
import time
import uuid

from lib import lab

CLONE_NEWNS = 0x20000
EXT4_IOC_SHUTDOWN = 0x8004587D
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def own_mounts():
    """A mount namespace of this process's own: what is mounted from now on goes with it. Why not, where the machine does not allow it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        return f"no mount namespace: {os.strerror(ctypes.get_errno())}"
    run = subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, text=True)
    return run.stderr.strip()


def ext4_lacks(place):
    """Why no ext4 file system can be made, mounted and shut down here; "" when it can."""
    try:
        disk = Ext4(place, place.path("probe"))
        disk.shut_down(2)
        disk.unmount()
    except (lab.Failed, OSError) as error:
        return f"no ext4 in a file: {error}"
    return ""


class Boot:
    """The boot id that every process of these mounts sees; only with own_mounts()."""

    def __init__(self, place):
        self.path = place.path("boot_id")
        self.again()
        subprocess.run(["mount", "--bind", self.path, BOOT_ID], check=True)

    def again(self):
        with open(self.path, "w", encoding="ascii") as f:
            f.write(f"{uuid.uuid4()}\n")


class Ext4:
    """A folder, the lab's state if none is named, on an ext4 file system in a file, which can lose its power."""

    def __init__(self, place, folder=None, size_mib=96):
        self.image = place.path("ext4.img")
        self.folder = folder or place.state
        with open(self.image, "wb") as f:
            f.truncate(size_mib << 20)
        self.tool("mkfs.ext4", "-q", "-F", self.image)
        os.makedirs(self.folder, exist_ok=True)
        self.mount()
        os.chmod(self.folder, 0o700)

    def tool(self, *words):
        run = subprocess.run(words, capture_output=True, text=True)
        if run.returncode != 0:
            raise lab.Failed(f"{' '.join(words)}: {run.stderr.strip()}")

    def mount(self):
        self.tool("mount", "-o", "loop,errors=remount-ro", self.image, self.folder)

    def shut_down(self, how):
        """As a loss of power. 0: what was written is flushed first; 1: the journal is; 2: nothing is."""
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, EXT4_IOC_SHUTDOWN, struct.pack("I", how))
        finally:
            os.close(fd)

    def make_read_only(self):
        """As the kernel does when it finds the file system damaged; whoever has files open for writing can no longer write."""
        with open("/proc/self/mounts", encoding="utf-8") as f:
            device = [line.split()[0] for line in f if f" {self.folder} " in line][-1]
        with open(f"/sys/fs/ext4/{os.path.basename(device)}/trigger_fs_error", "w", encoding="ascii") as f:
            f.write("1")

    def again(self):
        """Unmounted, checked and mounted, as the next boot does; nothing may hold files of it."""
        self.unmount()
        run = subprocess.run(["e2fsck", "-p", self.image], capture_output=True, text=True)
        if run.returncode > 1:
            raise lab.Failed(f"e2fsck: {run.returncode}: {run.stdout}")
        self.mount()

    def unmount(self):
        for _ in range(100):
            run = subprocess.run(["umount", self.folder], capture_output=True, text=True)
            if run.returncode == 0:
                return
            time.sleep(0.05)
        raise lab.Failed(f"umount: {run.stderr.strip()}")


class SmallDisk:
    """A folder, the lab's state if none is named, on a file system of its own."""

    def __init__(self, place, folder=None, size_mib=256, options=""):
        self.place = place
        self.folder = folder or place.state
        self.options = f"size={size_mib}m,mode=0700{options}"

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        run = subprocess.run(["mount", "-t", "tmpfs", "-o", self.options, "tmpfs", self.folder],
                             capture_output=True, text=True)
        if run.returncode != 0:
            lab.skip(f"no tmpfs can be mounted here: {run.stderr.strip()}")
        return self

    def __exit__(self, *_):
        self.place.end_all()
        subprocess.run(["umount", "-l", self.folder], check=False)

    def fill(self, leave_bytes):
        """A file that leaves so much room, or less: workers write meanwhile."""
        stat = os.statvfs(self.folder)
        size = stat.f_bavail * stat.f_frsize - leave_bytes
        try:
            with open(self.filler(), "wb") as f:
                for at in range(0, size, 1 << 20):
                    f.write(b"\0" * min(size - at, 1 << 20))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise

    def filler(self):
        return os.path.join(self.folder, "filler")
