# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

# The labels of a logarithmic axis from lo to hi: powers of ten, and with less than
# two of them 2 and 5 times those, too.  log_tic(lo, hi, i) is label i of 0 to
# log_tics(lo, hi).

narrow(lo, hi) = hi / lo < 101
first(lo) = floor(log10(lo) + 1e-6)
log_tics(lo, hi) = (ceil(log10(hi) - 1e-6) - first(lo)) * (narrow(lo, hi) ? 3 : 1)
log_tic(lo, hi, i) = !narrow(lo, hi) ? 10 ** (first(lo) + i) : \
    10 ** (first(lo) + i / 3) * (i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 5)
