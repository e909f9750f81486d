"""Python's garbage collector, kept from what was there before a trial: a full collection holds every thread.

What thousands of collected tests are made of takes half a second and more to go through, again and again, and no reader
of a member's lines, nor the clock, can run meanwhile: the harness would be deaf for longer than its judge tolerates.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Freezes all objects that there are now (`gc.freeze`), so that no collection goes through them while this lasts.

    Where somebody has frozen objects before, they stay frozen, and what is added to them too.
    """
    frozen_before = gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen_before:
            gc.unfreeze()
