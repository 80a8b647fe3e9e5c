/* What a lock pins from an earlier receipt, by task. A lock may be a stranger's, so every name and
 * digest is checked; that they follow from the receipt is for reuse_match(). */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/cell_name.h"
#include "prereg/program/same_work.h"
#include "prereg/reuse/reuse.h"

size_t reuse_find_task(const struct plan_program *p, const char *name)
{
    const char *slash = strrchr(name, '/');
    if (slash == NULL) {
        return INDEX_NONE;
    }
    char *cell_name = xstrndup(name, (size_t)(slash - name));
    const size_t cell = program_find_cell(p, cell_name);
    const size_t stage = program_find_stage(p, slash + 1);
    free(cell_name);
    return cell == INDEX_NONE || stage == INDEX_NONE ? INDEX_NONE : cell * p->n_stages + stage;
}

static int read_pin(const cJSON *o, struct reuse_pin *out, struct err *err)
{
    static const char *const digests[] = {"work", "sha256", "accepts"};
    int rc = json_get_string(o, "of", &out->of, err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(digests); i++) {
        const char *hex = NULL;
        rc = json_get_string(o, digests[i], &hex, err);
        rc = rc == 0 ? digest_from_hex(hex, &out->accepts, err) : rc;
    }
    return rc;
}

static int read_head(const struct lock *lock, const cJSON **tasks, struct err *err)
{
    static const char *const digests[] = {"root", "receipt"};
    const char *program = NULL;
    int rc = json_get_object(lock->reuse, "tasks", tasks, err);
    rc = rc == 0 ? json_get_string(lock->reuse, "program", &program, err) : rc;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(digests); i++) {
        struct digest d;
        const char *hex = NULL;
        rc = json_get_string(lock->reuse, digests[i], &hex, err);
        rc = rc == 0 ? digest_from_hex(hex, &d, err) : rc;
    }
    return rc;
}

int reuse_pins(const struct plan_program *p, const struct lock *lock, struct reuse_pin **out,
               struct err *err)
{
    const cJSON *tasks = NULL;
    const cJSON *m = NULL;
    *out = NULL;
    if (lock->reuse == NULL) {
        return 0;
    }
    struct reuse_pin *pins = xcalloc(program_n_tasks(p), sizeof(*pins));
    int rc = read_head(lock, &tasks, err);
    cJSON_ArrayForEach(m, tasks)
    {
        const size_t task = rc == 0 ? reuse_find_task(p, m->string) : INDEX_NONE;
        if (rc == 0 && (task == INDEX_NONE || program_worker_of(p, task) != task)) {
            rc = err_set(err, ERR_LOCK, "%.150s is not a task that does its own work", m->string);
        } else if (rc == 0 && (rc = read_pin(m, &pins[task], err)) != 0) {
            rc = err_wrap(err, "%.150s", m->string);
        }
    }
    if (rc != 0) {
        free(pins);
        err->code = ERR_LOCK;
        return err_wrap(err, "the lock's reuse");
    }
    *out = pins;
    return 0;
}

/* A cell counts when it has tasks of its own and all of them are. */
struct reuse_counts reuse_count(const struct plan_program *p, const struct reuse_pin *pins)
{
    struct reuse_counts n = {0};
    for (size_t c = 0; pins != NULL && c < p->n_cells; c++) {
        size_t own = 0;
        size_t reused = 0;
        for (size_t s = 0; s < p->n_stages; s++) {
            const size_t task = c * p->n_stages + s;
            own += program_worker_of(p, task) == task ? 1 : 0;
            reused += pins[task].of != NULL ? 1 : 0;
        }
        n.tasks += reused;
        n.cells += own > 0 && own == reused ? 1 : 0;
    }
    return n;
}
