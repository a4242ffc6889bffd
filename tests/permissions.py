"""Tests of permissions, also for root, whom they do not bind."""

import contextlib
import ctypes
import os

# Rights of root on Linux: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
_WHATEVER_PERMISSIONS_SAY = 1 << 1 | 1 << 2

_VERSION_OF_THE_CALL = 0x20080522


@contextlib.contextmanager
def bound():
    """Be somebody whom permissions bind; files stay one's own, those of the package too."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)

    def call(function, rights):
        header = (ctypes.c_uint32 * 2)(_VERSION_OF_THE_CALL, 0)  # 0: this thread
        if function(header, rights) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    rights = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice 32 each
    call(libc.capget, rights)
    fewer = type(rights)(rights[0] & ~_WHATEVER_PERMISSIONS_SAY, *rights[1:])
    call(libc.capset, fewer)
    try:
        yield
    finally:
        call(libc.capset, rights)
