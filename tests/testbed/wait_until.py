# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""How tests wait; wait_until.h and wait_until.subr do the same in C and shell.
"""

import time

# Long enough that only a failure takes so long.
WAIT_S = 180


def wait_until(condition, what, seen=None):
    """Return the value of condition() as soon as it is true.

    After WAIT_S seconds, fail with `what', which names the condition, and what
    seen() returns, or else the last value of the condition.
    """
    end = time.monotonic() + WAIT_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("waited %d s for %s: %s" % (
                WAIT_S, what, seen() if seen else value))
        time.sleep(0.002)
