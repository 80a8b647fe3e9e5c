/*
 * A cell that was trained and scored again, compared with what had been accepted (docs/rerun.md):
 * `preregctl rerun` writes such a file, export includes it, verify rebuilds it from the accepted
 * results and from the results that the file states.
 *
 *   {"schema":2,"tool":VERSION,"program":NAME,"root":HEX,"cell":NAME,"time":TEXT,
 *    "stages":[{"stage":NAME,"head":HEX,"result":HEX,"same":bool,
 *      "metrics":[{"name","accepted":METRIC|null,"rerun":METRIC|null,"same":bool}],
 *      "artifacts":[{"path","accepted":HEX|null,"rerun":HEX|null,"same":bool}],
 *      "environment":{"accepted":{...},"rerun":{...},"differs":[NAME,...]}}],
 *    "left_out":[STAGE,...],"level":LEVEL|null}
 *
 * "head" is that of the plan which the accepted attempt was given, "result" the digest of its
 * result.json. An environment is {"worker","kernel","cpu","blas","core","threads","arithmetic",
 * "instructions"}, each a value or null; schema 1 lacked the last two. LEVEL is RERUN_LEVEL, or
 * since schema 2 RERUN_LEVEL_ELSEWHERE where in every stage the instruction sets or the vendors of
 * the processors are known and differ.
 *
 * Invariants. Facts are not compared: times and memory are not part of a result. A metric without
 * a value (NaN) is the same as none, unless both sides give the same reason. The level holds when
 * every stage of the program was run again and is the same in all that it gave. "rerun" is a claim
 * of the file's writer: nothing in a receipt can show it.
 */
#ifndef CTL_RECEIPT_RERUN_FILE_H
#define CTL_RECEIPT_RERUN_FILE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "prereg/program/program.h"

#define RERUN_SCHEMA          2
#define RERUN_LEVEL           "re-executed"
#define RERUN_LEVEL_ELSEWHERE "re-executed on another processor"
#define RERUN_BYTES_MAX       ((size_t)64 << 20)
#define RERUN_NAME_MAX        ((size_t)64) /* of the file's name, without ".json" */

/* All borrowed. */
struct rerun_head {
    const char *tool;
    const char *program;
    const char *root;
    const char *cell;
    const char *time;
    int schema; /* 0: RERUN_SCHEMA */
};

/* One side of a stage: a result as its result.json says it, where the caller has seen to it that
 * what it says of its artifacts is so, and where it was made. */
struct rerun_side {
    const cJSON *result;
    const cJSON *environment;
};

/* One stage of a rerun: the accepted side and the new one. All borrowed. */
struct rerun_stage {
    const char *name;
    const char *head;
    const char *digest; /* of the accepted result */
    struct rerun_side accepted;
    struct rerun_side again;
};

/* Making one: begin, every stage in the plan's order, end. */
cJSON *rerun_file_begin(const struct rerun_head *head) __attribute__((returns_nonnull));
void rerun_file_add(cJSON *file, const struct rerun_stage *stage);
void rerun_file_end(cJSON *file, const struct plan_program *p);

/* Reads the members that do not follow from what was accepted. ERR_VERSION: a newer preregctl
 * wrote it; ERR_SYNTAX names what is not as above. */
int rerun_file_head(const cJSON *file, struct rerun_head *out, struct err *err) MUST_CHECK;
/* A stage's name and head, and its side `again`, whose result the caller deletes; the rest of *out
 * is left alone. */
int rerun_file_stage(const cJSON *stage, struct rerun_stage *out, cJSON **again,
                     struct err *err) MUST_CHECK;

/* {"worker",...} of what a result and a shim's start.json say, or of what has all of it, in the
 * form of a schema; each may be NULL. */
cJSON *rerun_environment(const cJSON *result, const cJSON *start) __attribute__((returns_nonnull));
cJSON *rerun_environment_of(const cJSON *place, int schema) __attribute__((returns_nonnull));

/* Makes the file's name, without ".json", from a cell ("dense,seed=1") and a time. The caller
 * frees it. */
char *rerun_file_name(const char *cell, const char *time) __attribute__((returns_nonnull));
/* Whether a file of the folder reruns/ may be called that. */
bool rerun_file_is_name(const char *name);

#endif
