/* Queries. Each is a SELECT whose rows a visitor sees one by one; nothing is written here. */
#include "state/store/internal.h"

/* What every SELECT below shares: prepare, bind the program, visit each row. `visit` returns as
 * visitors do. */
struct query {
    const char *sql;                   /* "%s" is replaced by `columns` */
    const struct row_columns *columns; /* NULL: none */
    const char *prefix;                /* of their names */
    int64_t args[2];
    int n_args;
    int (*visit)(sqlite3_stmt *stmt, const struct query *q, struct err *err);
    void *fn; /* pointer to the visitor's function pointer */
    void *ctx;
};

/* The text with the names of the columns in its place. */
static char *query_sql(const struct query *q)
{
    const char *at = q->columns == NULL ? NULL : strstr(q->sql, "%s");
    if (at == NULL) {
        return xstrdup(q->sql);
    }
    struct strbuf s = STRBUF_INIT;
    char *list = statement_columns(q->columns, q->prefix == NULL ? "" : q->prefix);
    strbuf_add(&s, q->sql, (size_t)(at - q->sql));
    strbuf_adds(&s, list);
    strbuf_adds(&s, at + 2);
    free(list);
    return strbuf_detach(&s);
}

static int run_query(struct store *store, const struct query *q, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool row = true;
    int stop = 0;
    char *sql = query_sql(q);
    int rc = sql_prepare(store->db, sql, &stmt, err);
    free(sql);
    if (rc == 0) {
        for (int i = 0; i < q->n_args; i++) {
            sql_bind_int(stmt, i + 1, q->args[i]);
        }
    }
    while (rc == 0 && row && stop == 0) {
        rc = sql_step(stmt, &row, err);
        if (rc == 0 && row) {
            stop = q->visit(stmt, q, err);
        }
    }
    (void)sqlite3_finalize(stmt);
    return rc != 0 ? rc : stop < 0 ? stop : 0;
}

/* Of "no, id, name, root, head, submitted_ms, n_cells, n_stages, unverified" and the status. */
static int read_program(sqlite3_stmt *stmt, struct store_program *out, struct err *err)
{
    *out = (struct store_program){
        .no = (uint32_t)sql_col_int(stmt, 0),
        .id = sql_col_text(stmt, 1),
        .name = sql_col_text(stmt, 2),
        .submitted = {sql_col_int(stmt, 5)},
        .n_cells = (uint32_t)sql_col_int(stmt, 6),
        .n_stages = (uint32_t)sql_col_int(stmt, 7),
        .unverified_history = sql_col_int(stmt, 8) != 0,
    };
    int rc = digest_from_hex(sql_col_text(stmt, 3), &out->root, err);
    if (rc != 0 || (rc = digest_from_hex(sql_col_text(stmt, 4), &out->head, err)) != 0 ||
        (rc = statement_read(stmt, 9, &PROGRAM_COLUMNS, &out->status, err)) != 0) {
        return rc;
    }
    if (out->status.verdict && digest_is_zero(&out->status.verdict_digest)) {
        return err_set(err, ERR_CORRUPT, "the database has a verdict of %s without its digest",
                       out->id);
    }
    return 0;
}

static int visit_program(sqlite3_stmt *stmt, const struct query *q, struct err *err)
{
    struct store_program p;
    store_program_fn **fn = q->fn;
    int rc = read_program(stmt, &p, err);
    return rc == 0 ? (*fn)(q->ctx, &p, err) : rc;
}

int store_programs(struct store *store, store_program_fn *fn, void *ctx, struct err *err)
{
    assert(store != NULL && fn != NULL);
    struct query q = {.sql = "SELECT no, id, name, root, head, submitted_ms, n_cells, n_stages,"
                             " unverified, %s FROM programs ORDER BY no",
                      .columns = &PROGRAM_COLUMNS,
                      .visit = visit_program,
                      .fn = &fn,
                      .ctx = ctx};
    return run_query(store, &q, err);
}

static int visit_task(sqlite3_stmt *stmt, const struct query *q, struct err *err)
{
    store_task_fn **fn = q->fn;
    struct store_task t = {
        .task = (uint32_t)sql_col_int(stmt, 0),
        .cell = sql_col_text(stmt, 1),
        .stage = sql_col_text(stmt, 2),
        .has_result = sql_col_text(stmt, 3)[0] != '\0',
    };
    int rc = statement_read(stmt, 4, &TASK_COLUMNS, &t.row, err);
    if (rc == 0 && t.has_result) {
        rc = digest_from_hex(sql_col_text(stmt, 3), &t.result_digest, err);
    }
    return rc == 0 ? (*fn)(q->ctx, &t, err) : rc;
}

int store_tasks(struct store *store, uint32_t program, store_task_fn *fn, void *ctx,
                struct err *err)
{
    assert(store != NULL && fn != NULL);
    struct query q = {
        .columns = &TASK_COLUMNS,
        .prefix = "t.",
        .sql = "SELECT t.task, c.name, s.name, r.digest, %s FROM tasks t"
               " JOIN programs p ON p.no = t.program"
               " JOIN cells c ON c.program = t.program AND c.cell = t.task / p.n_stages"
               " JOIN stages s ON s.program = t.program AND s.stage = t.task % p.n_stages"
               " LEFT JOIN results r ON r.program = t.program AND r.task = t.task"
               " WHERE t.program=?1 ORDER BY t.task",
        .args = {program},
        .n_args = 1,
        .visit = visit_task,
        .fn = &fn,
        .ctx = ctx,
    };
    return run_query(store, &q, err);
}

struct row_list {
    struct task_row *rows;
    size_t n;
    size_t cap;
};

static int visit_task_row(sqlite3_stmt *stmt, const struct query *q, struct err *err)
{
    struct row_list *list = q->ctx;
    if ((size_t)sql_col_int(stmt, 0) != list->n) {
        return err_set(err, ERR_CORRUPT,
                       "task %zu is missing; `preregctl rebuild` makes the database again",
                       list->n);
    }
    ARRAY_GROW(list->rows, list->n, list->cap);
    struct task_row *row = &list->rows[list->n++];
    *row = (struct task_row){0};
    return statement_read(stmt, 1, &TASK_COLUMNS, row, err);
}

int store_task_rows(struct store *store, uint32_t program, struct task_row **out, size_t *n,
                    struct err *err)
{
    assert(store != NULL && out != NULL && n != NULL);
    struct row_list list = {0};
    struct query q = {
        .sql = "SELECT task, %s FROM tasks WHERE program=?1 ORDER BY task",
        .columns = &TASK_COLUMNS,
        .args = {program},
        .n_args = 1,
        .visit = visit_task_row,
        .ctx = &list,
    };
    int rc = run_query(store, &q, err);
    if (rc != 0) {
        free(list.rows);
        list = (struct row_list){0};
    }
    *out = list.rows;
    *n = list.n;
    return rc;
}

static int visit_attempt(sqlite3_stmt *stmt, const struct query *q, struct err *err)
{
    struct attempt_row a;
    store_attempt_fn **fn = q->fn;
    attempt_row_init(&a);
    int rc = statement_read(stmt, 1, &ATTEMPT_COLUMNS, &a, err);
    return rc == 0 ? (*fn)(q->ctx, (uint32_t)sql_col_int(stmt, 0), &a, err) : rc;
}

int store_attempts(struct store *store, uint32_t program, uint32_t task, store_attempt_fn *fn,
                   void *ctx, struct err *err)
{
    assert(store != NULL && fn != NULL);
    bool one = task != UINT32_MAX;
    struct query q = {
        .sql = one ? "SELECT task, %s FROM attempts WHERE program=?1 AND task=?2 ORDER BY no"
                   : "SELECT task, %s FROM attempts WHERE program=?1 ORDER BY task, no",
        .columns = &ATTEMPT_COLUMNS,
        .args = {program, task},
        .n_args = one ? 2 : 1,
        .visit = visit_attempt,
        .fn = &fn,
        .ctx = ctx,
    };
    return run_query(store, &q, err);
}

int store_live_attempts(struct store *store, uint32_t program, store_attempt_fn *fn, void *ctx,
                        struct err *err)
{
    assert(store != NULL && fn != NULL);
    struct query q = {
        .sql = "SELECT task, %s FROM attempts WHERE program=?1 AND state<>'ended' ORDER BY task",
        .columns = &ATTEMPT_COLUMNS,
        .args = {program},
        .n_args = 1,
        .visit = visit_attempt,
        .fn = &fn,
        .ctx = ctx,
    };
    return run_query(store, &q, err);
}

static int visit_pause(sqlite3_stmt *stmt, const struct query *q, struct err *err)
{
    store_pause_fn **fn = q->fn;
    const char *why = sql_col_text(stmt, 1);
    return (*fn)(q->ctx, (unsigned)sql_col_int(stmt, 0), why[0] == '\0' ? NULL : why, err);
}

int store_pauses(struct store *store, uint32_t program, store_pause_fn *fn, void *ctx,
                 struct err *err)
{
    assert(store != NULL && fn != NULL);
    struct query q = {
        /* has() first: most lines need not be read as JSON then. */
        .sql = "SELECT json_extract(line, '$.status.paused'), json_extract(line, '$.detail')"
               " FROM journal WHERE program=?1 AND CASE WHEN NOT has(line, 'paused') THEN 0 ELSE"
               " json_extract(line, '$.event') IN ('paused', 'resumed') END ORDER BY seq",
        .args = {program},
        .n_args = 1,
        .visit = visit_pause,
        .fn = &fn,
        .ctx = ctx,
    };
    return run_query(store, &q, err);
}

static int visit_time(sqlite3_stmt *stmt, const struct query *q, struct err *err)
{
    const char *text = sql_col_text(stmt, 0);
    if (!clock_wall_parse(text, q->ctx)) {
        return err_set(err, ERR_CORRUPT, "a journal row's time is \"%.40s\"", text);
    }
    return 0;
}

int store_reported_time(struct store *store, uint32_t program, struct wall_time *out,
                        struct err *err)
{
    assert(store != NULL && out != NULL);
    *out = (struct wall_time){0};
    struct query q = {
        /* From the end: it is among the last rows. */
        .sql = "SELECT json_extract(line, '$.time') FROM journal WHERE program=?1"
               " AND has(line, '\"event\":\"reported\"') ORDER BY seq DESC LIMIT 1",
        .args = {program},
        .n_args = 1,
        .visit = visit_time,
        .ctx = out,
    };
    return run_query(store, &q, err);
}

static int visit_run(sqlite3_stmt *stmt, const struct query *q, struct err *err)
{
    store_run_fn **fn = q->fn;
    const char *run = sql_col_text(stmt, 1);
    return (*fn)(q->ctx, sql_col_int(stmt, 0), run[0] == '\0' ? "{}" : run, err);
}

int store_runs(struct store *store, uint32_t program, store_run_fn *fn, void *ctx, struct err *err)
{
    assert(store != NULL && fn != NULL);
    struct query q = {
        /* A line is canonical, so the member has exactly this text. */
        .sql = "SELECT seq, json_extract(line, CASE seq WHEN 1 THEN '$.run' ELSE '$.detail' END)"
               " FROM journal WHERE program=?1 AND (seq = 1 OR"
               " has(line, '\"event\":\"run_settings\"')) ORDER BY seq",
        .args = {program},
        .n_args = 1,
        .visit = visit_run,
        .fn = &fn,
        .ctx = ctx,
    };
    return run_query(store, &q, err);
}

static int visit_result(sqlite3_stmt *stmt, const struct query *q, struct err *err)
{
    store_result_fn **fn = q->fn;
    struct digest digest;
    int rc = digest_from_hex(sql_col_text(stmt, 2), &digest, err);
    return rc == 0 ? (*fn)(q->ctx, (uint32_t)sql_col_int(stmt, 0), (uint32_t)sql_col_int(stmt, 1),
                           &digest, err)
                   : rc;
}

int store_results(struct store *store, uint32_t program, store_result_fn *fn, void *ctx,
                  struct err *err)
{
    assert(store != NULL && fn != NULL);
    struct query q = {
        .sql =
            "SELECT r.task, r.attempt, r.digest FROM results r JOIN programs p ON p.no = r.program"
            " WHERE r.program=?1 AND r.task < p.n_cells * p.n_stages ORDER BY r.task",
        .args = {program},
        .n_args = 1,
        .visit = visit_result,
        .fn = &fn,
        .ctx = ctx,
    };
    return run_query(store, &q, err);
}

static int visit_line(sqlite3_stmt *stmt, const struct query *q, struct err *err)
{
    store_journal_fn **fn = q->fn;
    return (*fn)(q->ctx, sql_col_int(stmt, 0), sql_col_text(stmt, 1), err);
}

int store_journal(struct store *store, uint32_t program, int64_t from_seq, store_journal_fn *fn,
                  void *ctx, struct err *err)
{
    assert(store != NULL && fn != NULL);
    struct query q = {
        .sql = "SELECT seq, line FROM journal WHERE program=?1 AND seq>=?2 ORDER BY seq",
        .args = {program, from_seq},
        .n_args = 2,
        .visit = visit_line,
        .fn = &fn,
        .ctx = ctx,
    };
    return run_query(store, &q, err);
}

int store_journal_head(struct store *store, uint32_t program, struct digest *head, int64_t *n_rows,
                       struct err *err)
{
    assert(store != NULL && head != NULL && n_rows != NULL);
    sqlite3_stmt *stmt = NULL;
    bool row = false;
    int rc = sql_prepare(store->db, "SELECT journal_head, journal_rows FROM programs WHERE no=?1",
                         &stmt, err);
    if (rc == 0) {
        sql_bind_int(stmt, 1, program);
        rc = sql_step(stmt, &row, err);
    }
    if (rc == 0 && !row) {
        rc = err_set(err, ERR_NOT_FOUND, "there is no program %u", program);
    }
    if (rc == 0) {
        *n_rows = sql_col_int(stmt, 1);
        rc = digest_from_hex(sql_col_text(stmt, 0), head, err);
    }
    (void)sqlite3_finalize(stmt);
    return rc;
}

/* Looking for one program among all: there are few. They come oldest first. */
struct search {
    const char *name;          /* id, root, name or prefix of an id; NULL: not finished first */
    const struct digest *root; /* or this */
    struct arena *texts;
    struct store_program *out;
    int rank; /* of the best so far: 3 id or root, 2 name, 1 prefix, 0 none */
    int n_of_rank;
};

static bool is_root(const struct digest *root, const char *name)
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(root, hex);
    return strcmp(hex, name) == 0;
}

static int rank_of(const struct search *s, const struct store_program *p)
{
    if (s->root != NULL) {
        return digest_equal(s->root, &p->root) ? 3 : 0;
    }
    if (s->name == NULL) {
        return p->status.reported ? 2 : 3;
    }
    if (strcmp(s->name, p->id) == 0 || is_root(&p->root, s->name)) {
        return 3;
    }
    if (strcmp(s->name, p->name) == 0) {
        return 2;
    }
    return s->name[0] != '\0' && strncmp(s->name, p->id, strlen(s->name)) == 0;
}

static int visit_candidate(void *ctx, const struct store_program *p, struct err *err)
{
    (void)err;
    struct search *s = ctx;
    int rank = rank_of(s, p);
    if (rank == 0 || rank < s->rank) {
        return 0;
    }
    s->n_of_rank = rank == s->rank ? s->n_of_rank + 1 : 1;
    s->rank = rank;
    *s->out = *p;
    s->out->id = arena_strdup(s->texts, p->id);
    s->out->name = arena_strdup(s->texts, p->name);
    return 0;
}

int store_program_find(struct store *store, const char *name, struct arena *texts,
                       struct store_program *out, struct err *err)
{
    assert(store != NULL && texts != NULL && out != NULL);
    struct search s = {.name = name, .texts = texts, .out = out};
    int rc = store_programs(store, visit_candidate, &s, err);
    if (rc != 0) {
        return rc;
    }
    if (s.rank == 0) {
        return err_set(err, ERR_NOT_FOUND,
                       name == NULL ? "no program was submitted yet%s"
                                    : "no program is called \"%.80s\"",
                       name == NULL ? "" : name);
    }
    if (name != NULL && s.n_of_rank > 1) {
        return err_set(err, ERR_USAGE, "%s could be %d programs: say more of the id", name,
                       s.n_of_rank);
    }
    return 0;
}

int store_program_by_root(struct store *store, const struct digest *root, struct arena *texts,
                          struct store_program *out, struct err *err)
{
    assert(store != NULL && root != NULL && texts != NULL && out != NULL);
    struct search s = {.root = root, .texts = texts, .out = out};
    int rc = store_programs(store, visit_candidate, &s, err);
    return rc == 0 && s.rank == 0 ? err_set(err, ERR_NOT_FOUND, "no program of this root") : rc;
}
