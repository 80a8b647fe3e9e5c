/* The tables of columns, and access to a member by its type. Columns keep their order: the members
 * on which others depend (state, verdict) come before them. */
#include "state/columns.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"

/* clang-format off: one line a member */
#define TASK(name, json, type, member, declaration)                                                \
    {                                                                                              \
        name, json, (type), offsetof(struct task_row, member),                                     \
            sizeof(((struct task_row *)0)->member), (type) == COLUMN_U32 ? 0 : -JSON_INT_MAX,      \
            (type) == COLUMN_U32 ? UINT32_MAX : JSON_INT_MAX, 0, declaration                       \
    }
static const struct row_column TASK_ITEMS[] = {
    TASK("state", "state", COLUMN_TASK_STATE, state,
         "TEXT NOT NULL CHECK(state IN "
         "('waiting','ready','starting','running','done','blocked','never_run'))"),
    TASK("cause", "cause", COLUMN_CAUSE, cause, "TEXT NOT NULL DEFAULT ''"),
    TASK("linked", NULL, COLUMN_FLAG, linked, "INTEGER NOT NULL DEFAULT 0"),
    TASK("ending", "ending", COLUMN_CAUSE, ending, "TEXT NOT NULL DEFAULT ''"),
    TASK("n_attempts", "attempts", COLUMN_U32, n_attempts, "INTEGER NOT NULL DEFAULT 0"),
    TASK("spent", "spent", COLUMN_U32, spent, "INTEGER NOT NULL DEFAULT 0"),
    TASK("crashes", "crashes", COLUMN_U32, crashes, "INTEGER NOT NULL DEFAULT 0"),
    TASK("idle", "idle", COLUMN_U32, idle, "INTEGER NOT NULL DEFAULT 0"),
    TASK("no_space", "no_space", COLUMN_U32, no_space, "INTEGER NOT NULL DEFAULT 0"),
    TASK("best_done", "best_done", COLUMN_INT, best_done, "INTEGER NOT NULL DEFAULT -1"),
    TASK("best_checkpoint", "best_checkpoint", COLUMN_INT, best_checkpoint,
         "INTEGER NOT NULL DEFAULT -1"),
    TASK("not_before_ms", "not_before_ms", COLUMN_INT, not_before.ms, "INTEGER NOT NULL DEFAULT 0"),
};

#define ATTEMPT(name, json, type, member, min, max, flags, declaration)                            \
    {                                                                                              \
        name, json, (type), offsetof(struct attempt_row, member),                                  \
            sizeof(((struct attempt_row *)0)->member), min, max, flags, declaration                \
    }
#define PLACED (COLUMN_OPTIONAL | COLUMN_NONZERO)
#define MEASURED(name, flags, declaration)                                                         \
    ATTEMPT(#name, #name, COLUMN_INT, name, -JSON_INT_MAX, JSON_INT_MAX, flags, declaration)
static const struct row_column ATTEMPT_ITEMS[] = {
    ATTEMPT("no", "no", COLUMN_U32, no, 1, UINT32_MAX, COLUMN_KEY, "INTEGER NOT NULL"),
    ATTEMPT("id", "id", COLUMN_TEXT, id, 0, 0, COLUMN_KEY, "TEXT NOT NULL UNIQUE"),
    ATTEMPT("state", "state", COLUMN_ATTEMPT_STATE, state, 0, 0, 0,
            "TEXT NOT NULL CHECK(state IN ('starting','running','ended'))"),
    ATTEMPT("cause", "cause", COLUMN_CAUSE, cause, 0, 0, COLUMN_ENDED, "TEXT NOT NULL"),
    ATTEMPT("reason", "reason", COLUMN_REASON, reason, 0, 0, COLUMN_ENDED, "TEXT NOT NULL"),
    ATTEMPT("code", "code", COLUMN_I32, code, -1, 255, COLUMN_ENDED, "INTEGER NOT NULL"),
    ATTEMPT("signal", "signal", COLUMN_I32, signal, 0, 255, COLUMN_ENDED, "INTEGER NOT NULL"),
    ATTEMPT("started_ms", "started", COLUMN_TIME, started, 0, 0, 0, "INTEGER NOT NULL"),
    ATTEMPT("ended_ms", "ended", COLUMN_TIME, ended, 0, 0, COLUMN_ENDED, "INTEGER NOT NULL"),
    ATTEMPT("section", "section", COLUMN_SECTION, section, 0, 0, COLUMN_ENDED, "TEXT NOT NULL"),
    MEASURED(done, COLUMN_ENDED, "INTEGER NOT NULL"),
    MEASURED(total, COLUMN_ENDED, "INTEGER NOT NULL"),
    MEASURED(checkpoint, COLUMN_ENDED, "INTEGER NOT NULL"),
    MEASURED(resumed_from, COLUMN_ENDED, "INTEGER NOT NULL"),
    MEASURED(malformed, COLUMN_ENDED, "INTEGER NOT NULL"),
    MEASURED(offset, COLUMN_ENDED, "INTEGER NOT NULL"),
    MEASURED(user_ms, COLUMN_ENDED, "INTEGER NOT NULL"),
    MEASURED(system_ms, COLUMN_ENDED, "INTEGER NOT NULL"),
    MEASURED(max_rss_bytes, COLUMN_ENDED, "INTEGER NOT NULL"),
    ATTEMPT("ran_ms", "ran_ms", COLUMN_INT, ran_ms, 0, JSON_INT_MAX,
            COLUMN_ENDED | COLUMN_OPTIONAL | COLUMN_SPARSE, "INTEGER NOT NULL DEFAULT -1"),
    ATTEMPT("executor", "executor", COLUMN_EXECUTOR, placement.executor, 0, 0,
            COLUMN_OPTIONAL | COLUMN_SPARSE, "TEXT NOT NULL DEFAULT 'local'"),
    ATTEMPT("threads", "threads", COLUMN_U32, placement.threads, 0, UINT32_MAX, PLACED,
            "INTEGER NOT NULL DEFAULT 0"),
    ATTEMPT("memory_bytes", "memory_bytes", COLUMN_INT, placement.memory_bytes, 0, JSON_INT_MAX,
            PLACED, "INTEGER NOT NULL DEFAULT 0"),
    ATTEMPT("gpu_thousandths", "gpu_thousandths", COLUMN_INT, placement.gpu_thousandths, 0,
            PLACEMENT_GPU_THOUSANDTHS_MAX, PLACED, "INTEGER NOT NULL DEFAULT 0"),
    ATTEMPT("gpu_memory_bytes", "gpu_memory_bytes", COLUMN_INT, placement.gpu_memory_bytes, 0,
            JSON_INT_MAX, PLACED, "INTEGER NOT NULL DEFAULT 0"),
    ATTEMPT("gpus", "gpus", COLUMN_TEXT, placement.gpus, 0, 0, COLUMN_OPTIONAL | COLUMN_SPARSE,
            "TEXT NOT NULL DEFAULT ''"),
};

#define PROGRAM(name, type, max, flags, declaration)                                               \
    {                                                                                              \
#name, #name, type, offsetof(struct program_row, name),                                    \
            sizeof(((struct program_row *)0)->name), 0, max, flags, declaration                    \
    }
static const struct row_column PROGRAM_ITEMS[] = {
    PROGRAM(paused, COLUMN_U32, (1 << PAUSE_NR) - 1, 0, "INTEGER NOT NULL DEFAULT 0"),
    PROGRAM(unsealed, COLUMN_FLAG, 1, COLUMN_OPTIONAL, "INTEGER NOT NULL DEFAULT 0"),
    PROGRAM(unblinded, COLUMN_FLAG, 1, COLUMN_OPTIONAL, "INTEGER NOT NULL DEFAULT 0"),
    PROGRAM(verdict, COLUMN_FLAG, 1, COLUMN_OPTIONAL, "INTEGER NOT NULL DEFAULT 0"),
    PROGRAM(reported, COLUMN_FLAG, 1, COLUMN_OPTIONAL, "INTEGER NOT NULL DEFAULT 0"),
    PROGRAM(outcome, COLUMN_TEXT, 0, COLUMN_VERDICT, "TEXT NOT NULL DEFAULT ''"),
    PROGRAM(verdict_digest, COLUMN_DIGEST, 0, COLUMN_VERDICT, "TEXT NOT NULL DEFAULT ''"),
    PROGRAM(failures_accepted, COLUMN_FLAG, 1, COLUMN_OPTIONAL | COLUMN_SPARSE,
            "INTEGER NOT NULL DEFAULT 0"),
    PROGRAM(removed, COLUMN_FLAG, 1, COLUMN_OPTIONAL | COLUMN_SPARSE, "INTEGER NOT NULL DEFAULT 0"),
};
/* clang-format on */

const struct row_columns TASK_COLUMNS = {"tasks", TASK_ITEMS, ARRAY_LEN(TASK_ITEMS)};
const struct row_columns ATTEMPT_COLUMNS = {"attempts", ATTEMPT_ITEMS, ARRAY_LEN(ATTEMPT_ITEMS)};
const struct row_columns PROGRAM_COLUMNS = {"programs", PROGRAM_ITEMS, ARRAY_LEN(PROGRAM_ITEMS)};

bool column_is_int(const struct row_column *c)
{
    assert(c != NULL);
    return c->type <= COLUMN_TIME;
}

static const void *at_of(const struct row_column *c, const void *row)
{
    assert(c != NULL && row != NULL);
    return (const char *)row + c->offset;
}

static void *place_of(const struct row_column *c, void *row)
{
    assert(c != NULL && row != NULL);
    return (char *)row + c->offset;
}

int64_t column_int(const struct row_column *c, const void *row)
{
    const void *at = at_of(c, row);
    assert(column_is_int(c));
    if (c->type == COLUMN_U32) {
        return *(const uint32_t *)at;
    }
    if (c->type == COLUMN_I32) {
        return *(const int *)at;
    }
    if (c->type == COLUMN_FLAG) {
        return *(const bool *)at;
    }
    return c->type == COLUMN_TIME ? ((const struct wall_time *)at)->ms : *(const int64_t *)at;
}

void column_set_int(const struct row_column *c, void *row, int64_t value)
{
    void *at = place_of(c, row);
    assert(column_is_int(c));
    if (c->type == COLUMN_U32) {
        *(uint32_t *)at = value < 0 || value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
    } else if (c->type == COLUMN_I32) {
        *(int *)at = (int)value;
    } else if (c->type == COLUMN_FLAG) {
        *(bool *)at = value != 0;
    } else if (c->type == COLUMN_TIME) {
        ((struct wall_time *)at)->ms = value;
    } else {
        *(int64_t *)at = value;
    }
}

static const char *digest_text(const struct digest *d, char hex[DIGEST_HEX_SIZE])
{
    if (digest_is_zero(d)) {
        return "";
    }
    digest_hex(d, hex);
    return hex;
}

const char *column_text(const struct row_column *c, const void *row, char hex[DIGEST_HEX_SIZE])
{
    const void *at = at_of(c, row);
    assert(!column_is_int(c) && hex != NULL);
    switch (c->type) {
    case COLUMN_TEXT: return at;
    case COLUMN_DIGEST: return digest_text(at, hex);
    case COLUMN_TASK_STATE: return task_state_name(*(const enum task_state *)at);
    case COLUMN_ATTEMPT_STATE: return attempt_state_name(*(const enum attempt_state *)at);
    case COLUMN_CAUSE: return cause_name(*(const enum cause *)at);
    case COLUMN_REASON:
        return ((const struct attempt_row *)row)->state == ATTEMPT_ENDED
                   ? end_reason_name(*(const enum end_reason *)at)
                   : "";
    case COLUMN_SECTION: return section_name(*(const enum section *)at);
    case COLUMN_EXECUTOR: return executor_kind_name(*(const enum executor_kind *)at);
    case COLUMN_INT:
    case COLUMN_U32:
    case COLUMN_I32:
    case COLUMN_FLAG:
    case COLUMN_TIME: break;
    }
    return "";
}

static bool set_reason(struct attempt_row *a, const char *text)
{
    if (a->state != ATTEMPT_ENDED) {
        return true;
    }
    a->reason = end_reason_from_name(text);
    return a->reason != END_REASON_NR;
}

bool column_set_text(const struct row_column *c, void *row, const char *text)
{
    void *at = place_of(c, row);
    struct err ignored;
    assert(!column_is_int(c) && text != NULL);
    switch (c->type) {
    case COLUMN_TEXT: (void)snprintf(at, c->size, "%s", text); return true;
    case COLUMN_DIGEST:
        *(struct digest *)at = (struct digest){{0}};
        return text[0] == '\0' || digest_from_hex(text, at, &ignored) == 0;
    case COLUMN_TASK_STATE:
        return (*(enum task_state *)at = task_state_from_name(text)) != TASK_STATE_NR;
    case COLUMN_ATTEMPT_STATE:
        return (*(enum attempt_state *)at = attempt_state_from_name(text)) != ATTEMPT_STATE_NR;
    case COLUMN_CAUSE: return (*(enum cause *)at = cause_from_name(text)) != CAUSE_NR;
    case COLUMN_REASON: return set_reason(row, text);
    case COLUMN_SECTION: *(enum section *)at = section_from_name(text); return true;
    case COLUMN_EXECUTOR:
        return (*(enum executor_kind *)at = executor_kind_from_name(text)) != EXECUTOR_NR;
    case COLUMN_INT:
    case COLUMN_U32:
    case COLUMN_I32:
    case COLUMN_FLAG:
    case COLUMN_TIME: break;
    }
    return false;
}

/* Whether the value says nothing that its absence does not. */
static bool is_left_out(const struct row_column *c, const void *row)
{
    if ((c->flags & COLUMN_NONZERO) != 0) {
        return column_int(c, row) == 0;
    }
    if ((c->flags & COLUMN_SPARSE) == 0) {
        return false;
    }
    if (c->type == COLUMN_TEXT) {
        return *(const char *)at_of(c, row) == '\0';
    }
    if (c->type == COLUMN_EXECUTOR) {
        return *(const enum executor_kind *)at_of(c, row) == EXECUTOR_LOCAL;
    }
    return column_int(c, row) < (c->type == COLUMN_FLAG ? 1 : 0);
}

bool column_is_written(const struct row_column *c, const void *row)
{
    assert(c != NULL && row != NULL);
    return column_is_in_json(c, row) && !is_left_out(c, row);
}

bool column_is_in_json(const struct row_column *c, const void *row)
{
    assert(c != NULL && row != NULL);
    return c->json != NULL &&
           ((c->flags & COLUMN_ENDED) == 0 ||
            ((const struct attempt_row *)row)->state == ATTEMPT_ENDED) &&
           ((c->flags & COLUMN_VERDICT) == 0 || ((const struct program_row *)row)->verdict);
}
