"""What the kernel says of a file in memory: real files, on the disk of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_trial.process import page_cache
from kafka_trial.process.page_cache import cached_bytes, disk_read_bytes, make_cold

SIZE_BYTES = 4 * 1024 * 1024
MOST_BYTES = SIZE_BYTES * 9 // 10  # a kernel may drop any page at any time


@pytest.fixture
def written(tmp_path: Path) -> Iterator[int]:
    """A file that was just written, so that all of it is in memory."""
    file = tmp_path / "file"
    file.write_bytes(os.urandom(SIZE_BYTES))
    descriptor = os.open(file, os.O_RDONLY)
    try:
        if cached_bytes(descriptor) == 0:
            pytest.skip("the kernel keeps nothing of the files of tests in memory")
        yield descriptor
    except OSError as error:
        pytest.skip(str(error))
    finally:
        os.close(descriptor)


def test_a_file_goes_out_of_memory_and_comes_back(written: int) -> None:
    """As it is made cold, and as far as it is read; then this process has had it fetched from the disk."""
    assert cached_bytes(written) >= MOST_BYTES
    make_cold(written)
    if cached_bytes(written) >= MOST_BYTES:
        pytest.skip("the files of tests lie in memory, as on tmpfs")
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
