/* Checks the folder of a program's cells: before a spawn, before the verdict, before a result is
 * declared lost, and while the program waits for the folder to come back. An empty cells/ of a
 * program that has results is a mount point without its disk. */
#include "daemon/program/cells.h"

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"

/* One cell is enough: where a task was accepted, its cell's folder exists. */
static int find_cell(const struct hosted *h, const char *cells, bool *found, struct err *err)
{
    const struct plan_program *p = h->plan->program;
    int rc = 0;
    *found = false;
    for (size_t i = 0; rc == 0 && !*found && i < p->n_cells; i++) {
        enum file_kind kind = FILE_ABSENT;
        char *path = path_join(cells, p->cells[i].folder);
        rc = file_look(path, &kind, err);
        *found = kind == FILE_FOLDER;
        free(path);
    }
    return rc;
}

int cells_check(const struct hosted *h, bool used, struct err *err)
{
    enum file_kind kind = FILE_ABSENT;
    bool found = !used;
    char *cells = path_join(h->folder, LAYOUT_CELLS);
    int rc = file_look(cells, &kind, err);
    if (rc == 0 && kind != FILE_FOLDER) {
        rc = err_set(err, ERR_NOT_FOUND,
                     "the folder of its cells is not there: is its disk mounted? (%.140s)", cells);
    }
    if (rc == 0 && !found) {
        rc = find_cell(h, cells, &found, err);
    }
    if (rc == 0 && !found) {
        rc = err_set(err, ERR_NOT_FOUND,
                     "none of its cells is in their folder: is its disk mounted? (%.140s)", cells);
    }
    free(cells);
    return rc;
}

/* From the mirror, so it must run on the loop; jobs get the answer as a copy. */
bool cells_are_used(const struct hosted *h)
{
    return h->by_state[TASK_DONE] > 0;
}
