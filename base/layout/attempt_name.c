/*
 * Formats, parses and lists the names of attempts' folders. Parsing formats the number again, so
 * that exactly the two forms that were ever written are names.
 */
#include "base/layout/attempt_name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"

#define PREFIX "attempt-"
#define NEW    PREFIX "%02u-%s"
#define OLD    PREFIX "%04u-%s"

char *attempt_name_format(uint32_t no, const char *id)
{
    return xasprintf(NEW, no, id);
}

bool attempt_name_parse(const char *name, struct attempt_name *out)
{
    const size_t n = strlen(PREFIX);
    char *end = NULL;
    if (strncmp(name, PREFIX, n) != 0 || !isdigit((unsigned char)name[n])) {
        return false;
    }
    const unsigned long no = strtoul(name + n, &end, 10);
    if (no == 0 || no >= UINT32_MAX || *end != '-' || !uuid_is_valid(end + 1)) {
        return false;
    }
    out->no = (uint32_t)no;
    memcpy(out->id, end + 1, UUID_TEXT_SIZE);
    char *made = xasprintf(NEW, out->no, out->id);
    char *old = xasprintf(OLD, out->no, out->id);
    const bool is_name = strcmp(name, made) == 0 || strcmp(name, old) == 0;
    free(old);
    free(made);
    return is_name;
}

char *attempt_path(const char *task_folder, uint32_t no, const char *id)
{
    char *made = xasprintf("%s/" NEW, task_folder, no, id);
    char *old = xasprintf("%s/" OLD, task_folder, no, id);
    const bool is_old = file_kind_at(made) == FILE_ABSENT && file_kind_at(old) != FILE_ABSENT;
    free(is_old ? made : old);
    return is_old ? old : made;
}

/* Of equal numbers, which no daemon makes, the order of bytes decides. */
static int by_number(const void *a, const void *b)
{
    struct attempt_name x;
    struct attempt_name y;
    const char *left = *(char *const *)a;
    const char *right = *(char *const *)b;
    if (!attempt_name_parse(left, &x) || !attempt_name_parse(right, &y) || x.no == y.no) {
        return strcmp(left, right);
    }
    return x.no < y.no ? -1 : 1;
}

int attempt_list(const char *task_folder, struct name_list *out, struct err *err)
{
    struct attempt_name ignored;
    size_t n = 0;
    *out = (struct name_list){0};
    if (file_kind_at(task_folder) != FILE_FOLDER) {
        return 0;
    }
    if (dir_list(task_folder, out, err) != 0) {
        return err->code;
    }
    for (size_t i = 0; i < out->n; i++) {
        if (attempt_name_parse(out->names[i], &ignored)) {
            out->names[n++] = out->names[i];
        } else {
            free(out->names[i]);
        }
    }
    out->n = n;
    if (n > 1) {
        qsort(out->names, n, sizeof(*out->names), by_number);
    }
    return 0;
}

int attempt_task_read(const char *folder, cJSON **out, struct err *err)
{
    cJSON *end = NULL;
    char *task = path_join(folder, LAYOUT_TASK);
    char *exit = path_join(folder, LAYOUT_EXIT);
    int rc = json_read_file(task, LAYOUT_TASK_MAX, out, err);
    if (rc == ERR_NOT_FOUND) {
        rc = json_read_file(exit, LAYOUT_START_MAX, &end, err);
        *out = rc == 0 ? cJSON_DetachItemFromObjectCaseSensitive(end, ATTEMPT_TASK_MEMBER) : NULL;
        if (*out == NULL && (rc == 0 || rc == ERR_NOT_FOUND)) {
            rc =
                err_set(err, ERR_NOT_FOUND, "neither %s nor %s has the attempt's task", task, exit);
        }
    }
    cJSON_Delete(end);
    free(exit);
    free(task);
    return rc;
}
