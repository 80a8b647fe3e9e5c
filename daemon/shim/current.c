/* Writes, reads and compares current-attempt (current.h): the fence between attempts that may run
 * on different hosts, where no lock proves anything. */
#include "daemon/shim/current.h"

#include <stdio.h>
#include <string.h>

#include "base/files/file.h"
#include "base/files/shared_dir.h"
#include "base/layout/layout.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "base/xalloc.h"

#define CURRENT_MAX ((size_t)128)

int current_write(const char *task_folder, const struct attempt_name *a, struct err *err)
{
    char *path = path_join(task_folder, LAYOUT_CURRENT);
    char *line = xasprintf("%u %s\n", a->no, a->id);
    int rc = file_write_atomic(path, line, strlen(line), 0600, err);
    free(line);
    free(path);
    return rc;
}

int current_parse(const char *line, struct attempt_name *out, struct err *err)
{
    char number[16] = "";
    int64_t no = 0;
    int end = 0;
    int n = sscanf(line, "%15[0-9] %36[0-9a-f-]%n", number, out->id, &end);
    if (n != 2 || strcmp(line + end, "\n") != 0 || !uuid_is_valid(out->id) ||
        text_to_int(number, 1, UINT32_MAX, &no, err) != 0) {
        *out = (struct attempt_name){0};
        return err_set(err, ERR_CORRUPT,
                       LAYOUT_CURRENT ": expected \"<number> <uuid>\" on one line");
    }
    out->no = (uint32_t)no;
    return 0;
}

int current_read(const char *task_folder, struct attempt_name *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(task_folder, LAYOUT_CURRENT);
    *out = (struct attempt_name){0};
    int rc = shared_read(path, CURRENT_MAX, &text, err);
    if (rc == 0) {
        rc = current_parse(text.buf, out, err);
    }
    strbuf_release(&text);
    free(path);
    return rc;
}

enum current_finding current_judge(const struct attempt_name *current,
                                   const struct attempt_name *own)
{
    if (current->no < own->no) {
        return CURRENT_UNKNOWN;
    }
    return current->no == own->no && strcmp(current->id, own->id) == 0 ? CURRENT_OURS
                                                                       : CURRENT_SUPERSEDED;
}

enum current_finding current_compare(const char *attempt_folder, struct err *err)
{
    struct attempt_name own;
    struct attempt_name current;
    enum current_finding finding = CURRENT_UNKNOWN;
    char *task_folder = path_folder(attempt_folder);
    if (!attempt_name_parse(path_name(attempt_folder), &own)) {
        (void)err_set(err, ERR_INVALID, "%s is not the folder of an attempt", attempt_folder);
    } else if (current_read(task_folder, &current, err) == 0) {
        finding = current_judge(&current, &own);
        if (finding == CURRENT_UNKNOWN) {
            (void)err_set(err, ERR_BUSY, LAYOUT_CURRENT " still names attempt %u, an earlier one",
                          current.no);
        }
    }
    free(task_folder);
    return finding;
}
