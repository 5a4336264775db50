"""A Slurm cluster of one node on this machine, from Debian's slurm-wlm and munge; as root, in a folder of its own.

python tests/sweep/one_node.py COMMAND ...     # sets it up, runs the command with SLURM_CONF set, takes it down
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")


def missing() -> str:
    """Why no cluster can be set up here; empty where one can."""
    absent = [name for name in NEEDED if _tool(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed: apt-get install slurm-wlm munge"
    return "" if os.geteuid() == 0 else "slurmd needs root"


@contextmanager
def cluster(cpus: int = 2) -> Iterator[dict[str, str]]:
    """Set up the cluster; yields the environment its commands need, and takes it down."""
    folder = Path(tempfile.mkdtemp(prefix="pcclab-slurm-"))
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name in ("state", "spool", "munge"):
            (folder / name).mkdir(mode=0o700)
        folder.chmod(0o755)
        key = folder / "munge" / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        (folder / "munge").chmod(0o755)
        host, ports = socket.gethostname().partition(".")[0], _free_ports(2)
        configuration = folder / "slurm.conf"
        configuration.write_text(_configuration(folder, host, ports, cpus))
        environment = {**os.environ, "SLURM_CONF": str(configuration)}

        def start(*command: str) -> None:
            tool = _tool(command[0])
            assert tool is not None
            with (folder / "log").open("ab") as log:
                started.append(subprocess.Popen([tool, *command[1:]], env=environment, stdout=log, stderr=log))

        munge = folder / "munge"
        start("munged", "--foreground", "--force", f"--socket={munge / 'socket'}", f"--key-file={key}",
              f"--log-file={munge / 'log'}",
              f"--pid-file={munge / 'pid'}", f"--seed-file={munge / 'seed'}")  # fmt: skip
        _until(lambda: (munge / "socket").exists(), "munged", folder)
        start("slurmctld", "-D", "-f", str(configuration))
        start("slurmd", "-D", "-f", str(configuration), "-N", host)

        def ready() -> bool:
            told = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True)
            return told.stdout.strip() == "idle"

        _until(ready, "the node", folder)
        yield environment
    finally:
        if len(started) == 3:  # what a job started would outlive the node
            subprocess.run(["scancel", "--user=root"], env=environment, check=False)
            _until(lambda: not queue(environment), "an empty queue", folder)
        for process in reversed(started):
            process.terminate()
        for process in reversed(started):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def queue(environment: dict[str, str]) -> list[str]:
    """The jobs that Slurm still has."""
    told = subprocess.run(["squeue", "-h", "-r", "-o", "%i"], env=environment, capture_output=True, text=True)
    return told.stdout.split()


def _configuration(folder: Path, host: str, ports: list[int], cpus: int) -> str:
    settings = {
        "ClusterName": "pcclab",
        "SlurmctldHost": f"{host}(127.0.0.1)",
        "SlurmUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder / 'munge' / 'socket'}",
        "CredType": "cred/munge",
        "SlurmctldPort": ports[0],
        "SlurmdPort": ports[1],
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmdPidFile": folder / "slurmd.pid",
        "SlurmctldLogFile": folder / "slurmctld.log",
        "SlurmdLogFile": folder / "slurmd.log",
        "ProctrackType": "proctrack/pgid",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "ReturnToService": 2,
        "MpiDefault": "none",
        "KillWait": 15,
        "SchedulerParameters": "requeue_delay=1",
    }
    lines = [f"{name}={value}" for name, value in settings.items()]
    lines.append(f"NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN")
    lines.append(f"PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP")
    return "\n".join(lines) + "\n"


def _tool(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _until(ready: object, what: str, folder: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not ready():  # type: ignore[operator]
        if time.monotonic() > end:
            logs = "\n".join(file.read_text(errors="replace")[-1500:] for file in folder.glob("*log"))
            raise RuntimeError(f"{what} did not come up in {seconds:.0f} s:\n{logs}")
        time.sleep(0.3)


if __name__ == "__main__":
    if reason := missing():
        sys.exit(reason)
    with cluster() as around:
        sys.exit(subprocess.run(sys.argv[1:], env=around).returncode)
