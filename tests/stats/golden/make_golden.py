#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reference values from scipy, and exact ones by counting. In this directory:
./make_golden.py > golden_scipy.h   (tested with scipy 1.10)"""
from fractions import Fraction
from itertools import combinations
from math import comb, log

import numpy as np
import scipy.stats as st

tip = np.loadtxt("../data/tip-mean.txt")
mapping = np.loadtxt("../data/mapping-mean.txt")
x15 = [2.13, 3.4, 1.07, 8.8, 5.55, 4.01, 9.9, 7.21, 6.66, 3.07, 2.91, 5.02, 4.44, 12.3, 1.75]
y12 = [1.1, 2.2, 0.9, 3.3, 4.9, 1.31, 2.05, 6.1, 1.86, 0.55, 3.95, 2.77]
ties1 = [1, 2, 2, 3, 3, 3, 4, 7, 8, 8]
ties2 = [1, 1, 2, 3, 4, 4, 5]


def value(name, number):
    print(f"#define GOLDEN_{name} {float(number):.17g}")


def log_fraction(f):
    """ln of an exact fraction, whatever its size."""
    def big_log(n):
        shift = max(n.bit_length() - 1000, 0)
        return log(n >> shift) + shift * log(2)
    return big_log(f.numerator) - big_log(f.denominator)


def exact(a, b):
    """P(sum of a's midranks >= seen), <= seen: integers of any length, nothing rounded."""
    ranks = np.rint(2 * st.rankdata(np.concatenate([a, b]))).astype(int)
    seen, n = int(ranks[:len(a)].sum()), len(a)
    base = int(ranks.min())
    ways = [{} for _ in range(n + 1)]
    width = 64 * ((len(ranks) + 63) // 64 + 1)  # bits of a packed count
    packed = [0] * (n + 1)  # polynomial in the sum, packed into one integer
    packed[0] = 1
    for r in ranks:
        for j in range(n, 0, -1):
            packed[j] += packed[j - 1] << (width * (int(r) - base))
    seen -= n * base
    total = comb(len(ranks), n)
    poly, mask = packed[n], (1 << width) - 1
    low = high = 0
    raw = poly.to_bytes((poly.bit_length() + 7) // 8 + width // 8, "little")
    step = width // 8
    for s in range(len(raw) // step):
        count = int.from_bytes(raw[s * step:(s + 1) * step], "little")
        if s <= seen:
            low += count
        if s >= seen:
            high += count
    assert low + high >= total
    return log_fraction(Fraction(high, total)), log_fraction(Fraction(low, total))


print("/* SPDX-License-Identifier: MIT */\n/* Made by make_golden.py. */")
high, low = exact(ties1, ties2)
value("TIES_LOG_GREATER", high)
value("TIES_LOG_LESS", low)
# The same by drawing every set of places, as a check of the counting.
ranks = st.rankdata(ties1 + ties2)
sums = [sum(c) for c in combinations(ranks, len(ties1))]
assert abs(log(np.mean(np.array(sums) >= ranks[:10].sum() - 1e-9)) - high) < 1e-12
rounded = lambda v, to: np.round(v / to) * to
high, low = exact(rounded(mapping[:40], 1000), rounded(tip[:50], 1000))
value("ROUNDED_LOG_GREATER", high)
value("ROUNDED_LOG_LESS", low)
high, low = exact(mapping[:60], tip[:60])
value("SEED60_LOG_GREATER", high)
value("SCIPY_SEED_NORMAL_LOG_P", log(st.mannwhitneyu(mapping, tip, method="asymptotic").pvalue))
value("SCIPY_RANK_P", st.mannwhitneyu(x15, y12, method="exact").pvalue)
