"""Memory that was freed stays with the process instead of going back to the system."""

import ctypes
import sys


def keep_freed_memory() -> None:
    """Raise glibc's thresholds above which it maps each block and gives it back when it is freed.

    A training segment allocates and frees about a gigabyte; mapping it anew each time costs
    several times the arithmetic. Elsewhere than on Linux with glibc this does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        libc = ctypes.CDLL("libc.so.6")
        M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
        libc.mallopt(M_MMAP_THRESHOLD, 2**30)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
    except (OSError, AttributeError):
        return
