/*
 * A program in memory: bundles (text and lock), the plan for the core, the mirror of committed
 * rows, and the names and folders of tasks.
 *
 * The mirror changes only in hosted_apply() and its helpers, after a commit; status and answers
 * read it without asking the store. Cells and stages come from `plan`, the first bundle, because
 * amendments and another [run] never change them, and jobs may read it at any time.
 */
#include "daemon/program/hosted.h"

#include <assert.h>
#include <string.h>

#include "base/diag.h"
#include "base/files/file.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/program/amended.h"
#include "daemon/program/durable.h"
#include "prereg/amend/amend_sign.h"
#include "prereg/amend/amendment.h"
#include "prereg/program/apparatus_name.h"
#include "prereg/program/cell_name.h"
#include "prereg/program/same_work.h"
#include "state/journal/run_record.h"
#include "state/store/apparatus.h"

#define CHECK_CELL "apparatus" /* in the place of a cell's name; no cell has it */

/* ---- plan ---- */

/* The first run of a second one; n: it has none (yet, while its name is not known). */
static uint32_t find_first(const struct core_apparatus *list, uint32_t n, const char *name)
{
    uint32_t first = 0;
    while (first < n && (list[first].again || !apparatus_name_is_of(name, list[first].name))) {
        first++;
    }
    return first;
}

void plan_link_checks(struct core_apparatus *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        list[i].again = apparatus_name_is_end(list[i].name);
    }
    for (uint32_t i = 0; i < n; i++) {
        list[i].first = list[i].again ? find_first(list, n, list[i].name) : i;
    }
}

/* A check whose stage the program no longer has gets stage n_stages, as the core expects. */
static struct core_apparatus *plan_checks(const struct plan_program *p, const struct hosted *h)
{
    struct core_apparatus *list = xcalloc(h->n_checks + 1, sizeof(*list));
    for (size_t i = 0; i < h->n_checks; i++) {
        const struct hosted_check *c = &h->checks[i];
        list[i] = (struct core_apparatus){
            .name = c->name,
            .stage = (uint32_t)(c->stage < p->n_stages ? c->stage : p->n_stages),
            .declared = c->declared};
    }
    plan_link_checks(list, (uint32_t)h->n_checks);
    return list;
}

const struct reuse_pin *hosted_reuse(const struct hosted *h)
{
    const struct bundle *b = h->plan != NULL ? h->plan : h->bundle;
    return b == NULL ? NULL : b->reuse;
}

/* NULL where nothing is reused. */
static bool *plan_reused(const struct plan_program *p, const struct hosted *h)
{
    const struct reuse_pin *pins = hosted_reuse(h);
    const size_t n = pins == NULL ? 0 : program_n_tasks(p);
    bool *reused = n == 0 ? NULL : xcalloc(n, sizeof(*reused));
    for (size_t i = 0; i < n; i++) {
        reused[i] = pins[i].of != NULL;
    }
    return reused;
}

void plan_init(struct core_plan *plan, const struct plan_program *p, const struct hosted *h)
{
    struct core_plan_stage *stages = xcalloc(p->n_stages, sizeof(*stages));
    for (size_t i = 0; i < p->n_stages; i++) {
        const struct plan_stage *s = &p->stages[i];
        uint32_t *after = s->n_after == 0 ? NULL : xcalloc(s->n_after, sizeof(*after));
        for (size_t k = 0; k < s->n_after; k++) {
            after[k] = (uint32_t)s->after[k];
        }
        stages[i] = (struct core_plan_stage){
            .name = s->name,
            .after = after,
            .n_after = s->n_after,
            .counted = program_stage_is_counted(p, i),
            .sealed = program_stage_is_sealed(p, i),
            .executor = s->run.executor,
            .threads = (uint32_t)s->run.threads,
            .gpu_thousandths = s->run.gpu_thousandths,
            .gpu_memory_bytes = s->run.gpu_memory_bytes,
            .memory_bytes = s->run.memory_bytes,
            .crashes = (uint32_t)s->run.crashes,
            .attempts = (uint32_t)s->run.attempts,
        };
        for (size_t k = 0; k < SECTION_NR; k++) {
            stages[i].deadline_ms[k] = s->run.deadline_ms[k];
        }
    }
    *plan = (struct core_plan){.n_cells = (uint32_t)p->n_cells,
                               .n_stages = (uint32_t)p->n_stages,
                               .slots = (uint32_t)p->run.slots,
                               .max_queued = (uint32_t)p->run.slurm.max_queued,
                               .priority = (int32_t)p->run.priority,
                               .gpus_listed = !p->run.gpus_auto,
                               .gpus = p->run.gpus,
                               .n_gpus = p->run.n_gpus,
                               .gpu_model = p->pin_gpu,
                               .stages = stages,
                               .workers = p->workers,
                               .reused = plan_reused(p, h),
                               .apparatus = plan_checks(p, h),
                               .n_apparatus = (uint32_t)h->n_checks};
}

/* The unions cast const away from memory that plan_init() allocated itself. */
void plan_release(struct core_plan *plan)
{
    for (size_t i = 0; i < plan->n_stages; i++) {
        union {
            const uint32_t *in;
            void *out;
        } after = {.in = plan->stages[i].after};
        free(after.out);
    }
    union {
        const struct core_plan_stage *in;
        void *out;
    } stages = {.in = plan->stages};
    free(stages.out);
    union {
        const struct core_apparatus *in;
        void *out;
    } checks = {.in = plan->apparatus};
    free(checks.out);
    union {
        const bool *in;
        void *out;
    } reused = {.in = plan->reused};
    free(reused.out);
    *plan = (struct core_plan){0};
}

/* ---- hosted ---- */

struct hosted *hosted_new(uint32_t no, const char *state, const char *id)
{
    struct hosted *h = xcalloc(1, sizeof(*h));
    h->no = no;
    h->id = xstrdup(id);
    h->folder = layout_program(state, id);
    h->pins = pin_cache_create();
    h->syncs = sync_group_new();
    return h;
}

void hosted_free(struct hosted *h)
{
    if (h == NULL) {
        return;
    }
    run_record_free(h->run_record);
    run_record_free(h->followed);
    bundle_unref(h->bundle);
    bundle_unref(h->settings);
    bundle_unref(h->plan);
    cJSON_Delete(h->runs);
    pin_cache_free(h->pins);
    sync_group_free(h->syncs);
    amend_prepared_free(h->amend);
    amend_prepared_free(h->amending);
    cJSON_Delete(h->verdict_timing);
    free(h->verdict_text);
    for (size_t i = 0; i < PAUSE_NR; i++) {
        free(h->paused_why[i]);
    }
    free(h->withheld_why);
    free(h->history_why);
    free(h->clock_why);
    free(h->refused_why);
    free(h->report_why);
    hosted_forget_checks(h);
    free(h->tasks);
    free(h->times);
    free(h->folder);
    free(h->prune);
    free(h->id);
    free(h);
}

/* Jobs that hold the old bundle finish with it. */
void hosted_take_settings(struct hosted *h)
{
    if (h->settings != NULL) {
        bundle_unref(h->bundle);
        h->bundle = h->settings;
        h->settings = NULL;
    }
}

void hosted_forget_checks(struct hosted *h)
{
    for (size_t i = 0; i < h->n_checks; i++) {
        free(h->checks[i].name);
    }
    free(h->checks);
    h->checks = NULL;
    h->n_checks = 0;
}

/* The list is allocated once at its full size, so that jobs may read it while it grows. */
void hosted_add_check(struct hosted *h, const char *name, size_t stage, bool declared)
{
    if (h->checks == NULL) {
        h->checks = xcalloc(STORE_APPARATUS_MAX, sizeof(*h->checks));
    }
    assert(h->n_checks < STORE_APPARATUS_MAX);
    h->checks[h->n_checks++] = (struct hosted_check){
        .name = xstrdup(name), .stage = stage, .declared = declared, .took_ms = -1};
}

/* The plan is kept from the first call on: its cells and stages never change. */
void hosted_set_tasks(struct hosted *h, struct task_row *rows, size_t n)
{
    free(h->tasks);
    free(h->times);
    if (h->plan == NULL) {
        h->plan = bundle_ref(h->bundle);
    }
    h->tasks = rows;
    h->n_tasks = program_n_tasks(h->plan->program);
    assert(n == h->n_tasks + h->n_checks);
    h->times = xcalloc(h->bundle->program->n_stages, sizeof(*h->times));
    memset(h->by_state, 0, sizeof(h->by_state));
    for (size_t i = 0; i < h->n_tasks; i++) {
        h->by_state[rows[i].state]++;
    }
}

/* Counts by state cover the grid only; checks are in no count (invariant 4). */
static void apply_task(struct hosted *h, const struct state_row *row)
{
    assert(row->task < h->n_tasks + h->n_checks);
    struct task_row *t = &h->tasks[row->task];
    if (hosted_is_check(h, row->task)) {
        *t = row->after;
        return;
    }
    h->by_state[t->state]--;
    *t = row->after;
    h->by_state[t->state]++;
}

bool hosted_is_reused(const struct hosted *h, uint32_t task)
{
    const struct reuse_pin *pins = hosted_reuse(h);
    return !hosted_is_check(h, task) && pins != NULL && pins[task].of != NULL;
}

bool hosted_accepts(const struct hosted *h, uint32_t task)
{
    return !hosted_is_check(h, task) &&
           (program_worker_of(h->plan->program, task) != task || hosted_is_reused(h, task));
}

void hosted_note_time(struct hosted *h, uint32_t task, const struct attempt_row *a)
{
    const bool ended_well = a->state == ATTEMPT_ENDED && a->cause == CAUSE_NONE && a->ran_ms >= 0;
    if (ended_well && hosted_is_check(h, task)) {
        h->checks[task - h->n_tasks].took_ms = a->ran_ms;
        return;
    }
    if (!ended_well || hosted_accepts(h, task)) {
        return; /* what runs no worker takes moments, which the others do not */
    }
    struct stage_times *t = &h->times[hosted_stage(h, task)];
    t->n++;
    t->sum_ms += (double)a->ran_ms;
}

/* Replaces *to by a copy; NULL clears it. */
static void keep_text(char **to, const char *from)
{
    free(*to);
    *to = from == NULL ? NULL : xstrdup(from);
}

/* The place of a pause bit in paused_why. */
static size_t pause_index(enum pause_bit bit)
{
    return (size_t)__builtin_ctz((unsigned)bit);
}

void hosted_note_pauses(struct hosted *h, unsigned before, unsigned after, const char *why)
{
    for (size_t i = 0; i < PAUSE_NR; i++) {
        if ((after >> i & 1U) == 0) {
            keep_text(&h->paused_why[i], NULL);
        } else if ((before >> i & 1U) == 0) {
            keep_text(&h->paused_why[i], why);
        }
    }
}

void hosted_set_paused_why(struct hosted *h, enum pause_bit bit, const char *why)
{
    keep_text(&h->paused_why[pause_index(bit)], why);
}

static const struct pause {
    enum pause_bit bit;
    const char *by;
} PAUSES[PAUSE_NR] = {{PAUSE_STOPPING, "cancel"},     {PAUSE_LOCK, "lock"},
                      {PAUSE_APPARATUS, "apparatus"}, {PAUSE_FAILURES, "failures"},
                      {PAUSE_DISK, "no_space"},       {PAUSE_PERSON, "user"},
                      {PAUSE_HOST, "host"},           {PAUSE_DATA, "data"}};

/* The table is in the order in which a user should hear of them. */
static const struct pause *first_pause(const struct hosted *h)
{
    for (size_t i = 0; i < PAUSE_NR; i++) {
        if ((h->status.paused & (unsigned)PAUSES[i].bit) != 0) {
            return &PAUSES[i];
        }
    }
    return NULL;
}

const char *hosted_paused_by(const struct hosted *h)
{
    const struct pause *p = first_pause(h);
    return p == NULL ? NULL : p->by;
}

const char *hosted_why_of(const struct hosted *h, enum pause_bit bit)
{
    return h->paused_why[pause_index(bit)];
}

const char *hosted_paused_why(const struct hosted *h)
{
    const struct pause *p = first_pause(h);
    return p == NULL ? h->refused_why : h->paused_why[pause_index(p->bit)];
}

/* Mirrors one committed row. Rows arrive in the order of the journal. */
void hosted_apply(struct hosted *h, const struct state_row *row)
{
    h->version++;
    if (row_kind_is_of_task(row->kind)) {
        apply_task(h, row);
        if (row->kind == ROW_ATTEMPT_RUNNING) {
            h->host_wait_ms = 0; /* the machine can start attempts again */
        }
        if (row->kind == ROW_ATTEMPT_ENDED) {
            h->malformed += row->attempt.malformed;
            hosted_note_time(h, row->task, &row->attempt);
        }
        return;
    }
    hosted_note_pauses(h, h->status.paused, row->status.paused, row->detail);
    h->status = row->status;
    if (row->kind == ROW_VERDICT_REFUSED) {
        keep_text(&h->refused_why, row->detail);
    } else if (row->kind == ROW_VERDICT) {
        memcpy(h->verdict_head, h->bundle->lock->head, sizeof(h->verdict_head));
        keep_text(&h->refused_why, NULL);
    } else if (row->kind == ROW_REPORTED) {
        h->finished = row->time;
    }
}

const char *hosted_history(const struct hosted *h)
{
    return h->unverified ? "unverified" : h->checking ? "checking" : "verified";
}

bool hosted_is_check(const struct hosted *h, uint32_t task)
{
    return task >= h->n_tasks;
}

uint32_t hosted_first_run(const struct hosted *h, uint32_t task)
{
    const char *name = hosted_is_check(h, task) ? h->checks[task - h->n_tasks].name : "";
    for (size_t i = 0; apparatus_name_is_end(name) && i < h->n_checks; i++) {
        if (apparatus_name_is_of(name, h->checks[i].name)) {
            return (uint32_t)(h->n_tasks + i);
        }
    }
    return UINT32_MAX;
}

size_t hosted_cell(const struct hosted *h, uint32_t task)
{
    return task / h->plan->program->n_stages;
}

size_t hosted_stage(const struct hosted *h, uint32_t task)
{
    return hosted_is_check(h, task) ? h->checks[task - h->n_tasks].stage
                                    : task % h->plan->program->n_stages;
}

/* Uses the cell's folder name, not its name: the two may differ. */
char *hosted_task_folder(const struct hosted *h, uint32_t task)
{
    const struct plan_program *p = h->plan->program;
    if (hosted_is_check(h, task)) {
        return layout_check(h->folder, h->checks[task - h->n_tasks].name);
    }
    return layout_task(h->folder, p->cells[hosted_cell(h, task)].folder,
                       p->stages[hosted_stage(h, task)].name);
}

char *hosted_attempt_folder(const struct hosted *h, uint32_t task, uint32_t no, const char *id)
{
    char *folder = hosted_task_folder(h, task);
    char *out = attempt_path(folder, no, id);
    free(folder);
    return out;
}

char *hosted_task_name(const struct hosted *h, uint32_t task)
{
    const struct plan_program *p = h->plan->program;
    if (hosted_is_check(h, task)) {
        return xasprintf("%s/%s", CHECK_CELL, h->checks[task - h->n_tasks].name);
    }
    return xasprintf("%s/%s", p->cells[hosted_cell(h, task)].name,
                     p->stages[hosted_stage(h, task)].name);
}

/* By name; a check whose stage is gone cannot be asked about. */
static uint32_t find_check(const struct hosted *h, const char *name)
{
    for (size_t i = 0; i < h->n_checks; i++) {
        if (strcmp(h->checks[i].name, name) == 0 && h->checks[i].stage != INDEX_NONE) {
            return (uint32_t)(h->n_tasks + i);
        }
    }
    return UINT32_MAX;
}

/* The last slash separates cell and stage. */
uint32_t hosted_find_task(const struct hosted *h, const char *name)
{
    if (strncmp(name, CHECK_CELL "/", sizeof(CHECK_CELL)) == 0) {
        return find_check(h, name + sizeof(CHECK_CELL));
    }
    const struct plan_program *p = h->plan->program;
    const char *slash = strrchr(name, '/');
    if (slash == NULL) {
        return UINT32_MAX;
    }
    char *cell_name = xstrndup(name, (size_t)(slash - name));
    size_t cell = program_match_cell(p, cell_name);
    size_t stage = program_find_stage(p, slash + 1);
    free(cell_name);
    return cell == INDEX_NONE || stage == INDEX_NONE ? UINT32_MAX
                                                     : (uint32_t)(cell * p->n_stages + stage);
}
