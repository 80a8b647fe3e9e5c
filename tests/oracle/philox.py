"""Philox 4x32-10 and Box and Muller's normal numbers once more, in Python integers: the same words as worker/data/philox.c.

test_init.py holds them against the known answers of Random123.
"""

import math

import numpy

INIT, MIX, ORDER, OFFSET, ROUTER = 1, 3, 4, 5, 6
WORD = 2**32
EXPERT_PAIRS = 512  # numbers of a token are counted by this


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        low, high = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [high // WORD ^ c[1] ^ k[0], high % WORD, low // WORD ^ c[3] ^ k[1], low % WORD]
        k = [(k[0] + 0x9E3779B9) % WORD, (k[1] + 0xBB67AE85) % WORD]
    return c


def words(seed, stream, a, b):
    return philox([b % WORD, b // WORD, a, stream], [seed % WORD, seed // WORD])


def unit(high, low):
    return ((high * WORD + low >> 11) + 0.5) / 2**53


def normal_pair(seed, stream, a, b):
    w = words(seed, stream, a, b)
    r, angle = math.sqrt(-2 * math.log(unit(w[0], w[1]))), 2 * math.pi * unit(w[2], w[3])
    return r * math.cos(angle), r * math.sin(angle)


def normals(seed, tensor, n):
    return numpy.array([z for pair in range((n + 1) // 2) for z in normal_pair(seed, INIT, tensor, pair)][:n])


def router_normals(seed, layer, first_token, n, experts):
    """What is added to a router's logits (n, experts) in training, before it is multiplied by router_noise."""
    return numpy.array([[z for pair in range((experts + 1) // 2)
                         for z in normal_pair(seed, ROUTER, layer, token * EXPERT_PAIRS + pair)][:experts]
                        for token in range(first_token, first_token + n)])
