/*
 * The demo corpus: a small made-up world in short English sentences, and four benchmarks about it.
 *
 * Everything follows from the seed alone, byte for byte, on any machine. Four regularities, each
 * with a benchmark of its own, from easy to out of reach for a model of some 100,000 parameters:
 *
 *   grammar  word order, and agreement of subject and verb across another noun
 *            (query/choices/gold, 4 choices)
 *   recall   who drinks, keeps, wears what and lives where: facts to be memorised (4 choices)
 *   giving   who has the thing after it was given or taken
 *            (context_options/continuation/gold, 2 options)
 *   sums     addition modulo 31 in figures (4 choices)
 *
 * What a benchmark asks is never in the corpus: each combination (sentence, fact and phrase,
 * triple, pair) is either reserved for the items or free for the corpus, decided by a hash of seed
 * and combination. Gold answers are spread evenly over the positions.
 */
#ifndef WORKER_DATA_DEMO_H
#define WORKER_DATA_DEMO_H

#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

enum demo_file_kind {
    DEMO_CORPUS,
    DEMO_GRAMMAR,
    DEMO_RECALL,
    DEMO_GIVING,
    DEMO_SUMS,
    DEMO_FILE_NR,
};

struct demo_file {
    const char *name; /* file name inside the folder */
    struct strbuf text;
};

#define DEMO_SIZE_MIN     10000
#define DEMO_SIZE_DEFAULT 800000
#define DEMO_SIZE_MAX     50000000
#define DEMO_ITEMS        288 /* of each benchmark */

/* Fills all files; corpus_bytes is the least size of the corpus (it ends with a whole document).
 * The items do not depend on corpus_bytes. The caller releases. */
void demo_generate(uint64_t seed, size_t corpus_bytes, struct demo_file files[DEMO_FILE_NR]);
void demo_release(struct demo_file files[DEMO_FILE_NR]);

/* Generates and writes the files into the folder, which is made when absent. */
int demo_write(uint64_t seed, size_t corpus_bytes, const char *folder, struct err *err) MUST_CHECK;

#endif
