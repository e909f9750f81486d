"""What the kernel says of a file in memory: real files, on the disk of the tests."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kafka_trial.process import page_cache
from kafka_trial.process.page_cache import cached_bytes, disk_read_bytes, make_cold

SIZE_BYTES = 4 * 1024 * 1024
IN_MEMORY = ("tmpfs", "ramfs")
MOST_BYTES = SIZE_BYTES * 9 // 10  # a kernel may drop any page at any time


@pytest.fixture
def written(tmp_path: Path) -> Iterator[int]:
    """A file that was just written, so that all of it is in memory; on a disk, under a kernel that tells."""
    if (kind := file_system_of(tmp_path)) in IN_MEMORY:
        pytest.skip(f"the files of tests lie in memory ({kind})")
    file = tmp_path / "file"
    file.write_bytes(os.urandom(SIZE_BYTES))
    descriptor = os.open(file, os.O_RDONLY)
    try:
        cached_bytes(descriptor)
    except OSError as error:
        os.close(descriptor)
        if error.errno != errno.ENOSYS:
            raise
        pytest.skip(str(error))
    yield descriptor
    os.close(descriptor)


def file_system_of(path: Path) -> str:
    """The kind of the file system that holds a path."""
    mounts = [one for one in psutil.disk_partitions(all=True) if path.is_relative_to(one.mountpoint)]
    return max(mounts, key=lambda one: len(one.mountpoint)).fstype


def test_a_file_goes_out_of_memory_and_comes_back(written: int) -> None:
    """As it is made cold, and as far as it is read; then this process has read it from the disk."""
    assert cached_bytes(written) >= MOST_BYTES
    make_cold(written)
    assert cached_bytes(written) <= SIZE_BYTES - MOST_BYTES
    before = disk_read_bytes(os.getpid())
    assert len(os.pread(written, SIZE_BYTES, 0)) == SIZE_BYTES
    assert cached_bytes(written) >= MOST_BYTES
    assert disk_read_bytes(os.getpid()) - before >= MOST_BYTES


def test_a_kernel_without_the_call_says_so(written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an error of its own, with the name of the call."""
    monkeypatch.setattr(page_cache, "CACHESTAT", 100_000)
    with pytest.raises(OSError, match="cachestat: Function not implemented"):
        cached_bytes(written)
