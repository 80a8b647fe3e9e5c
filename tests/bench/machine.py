"""The machine that figures are of, as every bench prints it."""

import os
import platform
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def first_line(command):
    try:
        out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return "not installed"
    return out.splitlines()[0].strip() if out.strip() else "unknown"


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def memory_gib():
    with open("/proc/meminfo", encoding="utf-8") as f:
        return int(f.readline().split()[1]) / 2**20


def machine():
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_gib(), 1),
        "load": os.getloadavg()[0],
        "kernel": platform.release(),
        "compiler": first_line(["cc", "--version"]),
        "commit": first_line(["git", "-C", HERE, "rev-parse", "--short", "HEAD"]),
    }
