#!/usr/bin/env python3
"""Initial weights and the order of training sequences against a second implementation of Philox 4x32-10, in Python integers.

    test_init.py BUILD_FOLDER

That implementation is first held against the known answers of Random123 (kat_vectors of Salmon et al., SC 2011).
"""

import json
import math
import os
import sys
import tempfile

import numpy

import oracle
from philox import MIX, OFFSET, ORDER, WORD, normals, philox, words

KNOWN = [([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
         ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
         ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0],
          [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1])]
BLOCK = 10000


def permute(seed, stream, a, b, i, n):
    """Four Feistel rounds on the smallest even number of bits that holds n, walked until it falls inside."""
    half = 1
    while 4**half < n:
        half += 1
    while True:
        left, right = divmod(i, 2**half)
        for turn in range(4):
            word = philox([right, b, a, stream * 256 + turn], [seed % WORD, seed // WORD])[0]
            left, right = right, left ^ word % 2**half
        i = left * 2**half + right
        if i < n:
            return i


def check_init(dump, seed, sd):
    flat, worst = dump.reals("init.bin").astype(numpy.float64), 0.0
    for index, t in enumerate(dump.layout["tensors"]):
        ours = flat[t["offset"]:t["offset"] + t["rows"] * t["cols"]]
        if t["cols"] == 1:
            assert (ours == 1.0).all(), t["name"]
            continue
        residual = "o_proj" in t["name"] or t["name"].split(".")[-1] == "down" or "down_proj" in t["name"]
        scale = sd / math.sqrt(2 * dump.model["layers"]) if residual else sd
        worst = max(worst, float(numpy.abs(ours / (scale * normals(seed, index, len(ours))) - 1).max()))
    return worst


def check_order(dump, sources, seed):
    """sources: per source its part of a block and its training tokens; every sequence of the run must be the one expected."""
    tokens, targets = (x.reshape(-1, dump.model["context"]).numpy() for x in dump.order())
    context = dump.model["context"]
    for slot, (got, following) in enumerate(zip(tokens, targets)):
        block, s = slot // BLOCK, 0
        place = permute(seed, MIX, block % WORD, block // WORD, slot % BLOCK, BLOCK)
        while place >= sources[s][0]:
            place, s = place - sources[s][0], s + 1
        part, ids = sources[s]
        n_windows = (len(ids) - context) // context
        epoch, k = divmod(block * part + place, n_windows)
        start = words(seed, OFFSET, s, epoch)[0] % context + permute(seed, ORDER, s, epoch, k, n_windows) * context
        assert (got == ids[start:start + context]).all(), f"sequence {slot} is another"
        assert (following == ids[start + 1:start + 1 + context]).all(), f"targets of sequence {slot} are others"
    return len(tokens)


def training_ids(text, held_out):
    """The corpus's bytes, each document ended by 256, without the documents that are among the held-out tokens."""
    documents = [d.strip("\n") for d in text.split("<|endoftext|>")]
    held, kept = bytes_of(held_out), []
    for d in filter(None, documents):
        ids = list(d.encode()) + [256]
        if bytes_of(ids) not in held:
            kept += ids
    return numpy.array(kept)


def bytes_of(ids):
    return numpy.asarray(ids, dtype=numpy.uint16).tobytes()


def main():
    for counter, key, want in KNOWN:
        assert philox(counter, key) == want, (counter, philox(counter, key))
    seed, sd = 2**40 + 12345, 0.07
    params = {"layers": 2, "width": 24, "heads": 3, "ffn": 20, "experts": 3, "top_k": 2, "shared": 1, "dense_layers": 1,
              "expert_ffn": 9, "tie_embeddings": False, "context": 40, "batch_tokens": 400, "seed": seed, "init_std": sd,
              "lr": 0.01, "mix": {"a": 0.7, "b": 0.3}, "horizon": {"contract": "fixed", "tokens": 400 * 400}}
    with tempfile.TemporaryDirectory() as scratch:
        corpus, second = os.path.join(scratch, "a.txt"), os.path.join(scratch, "b.txt")
        oracle.drive(sys.argv[1], "corpus", corpus)
        with open(corpus, encoding="utf-8") as f:
            text = f.read()
        with open(second, "w", encoding="utf-8") as f:
            f.write(text[:len(text) // 3].replace("times", "TIMES"))
        for double, limit in ((True, 1e-13), (False, 1e-7)):
            folder = os.path.join(scratch, f"run_{double}")
            oracle.write_task(folder, params, {"a": corpus, "b": second})
            oracle.drive(sys.argv[1], "inputs", folder, double)
            dump = oracle.Dump(folder)
            error = check_init(dump, seed, sd)
            print(f"{dump.layout['real']}: initial weights, worst relative difference {error:.1e}")
            assert error <= limit, f"{error} > {limit}"
        sources = []
        for part, path in ((7000, corpus), (3000, second)):
            with open(path, encoding="utf-8") as f:
                held = numpy.fromfile(os.path.join(folder, f"val_{os.path.basename(path)[0]}.bin"), dtype=numpy.uint32)
                sources.append((part, training_ids(f.read(), held)))
        print(f"{check_order(dump, sources, seed)} training sequences are the ones expected")


main()
