"""What a harness in a process of its own does in the tests of `concurrency`."""

import os

from kafka_trial.process.children import ChildProcesses


def spawn(child_processes: ChildProcesses, shell: str) -> tuple[int, int]:
    """Starts a shell that prints the pid of a grandchild; returns (child, grandchild)."""
    read_end, write_end = os.pipe()
    child = child_processes.spawn("maker", ["sh", "-c", shell], stdout=write_end)
    os.close(write_end)
    with os.fdopen(read_end) as reader:
        return _Pids(child.pid, int(reader.readline()))


class _Pids(tuple):  # type: ignore[type-arg]
    """Prints as two numbers."""

    def __new__(cls, *pids: int) -> "_Pids":
        return super().__new__(cls, pids)

    def __str__(self) -> str:
        return " ".join(map(str, self))
