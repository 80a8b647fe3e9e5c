/* Compares the copied files of a report with the sums that prereg-report wrote last: a report
 * that was changed, or whose writing was interrupted, does not get into a receipt. Called by
 * export before anything is made of the copies. */
#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/export_parts.h"
#include "ctl/receipt/layout.h"

#define SUMS_MAX ((size_t)1 << 20)

static const char *const REPORTED[] = {RECEIPT_VERDICT,    RECEIPT_PROVENANCE, RECEIPT_INSTRUMENTS,
                                       LAYOUT_REPORT_HTML, LAYOUT_REPORT_MD,   LAYOUT_REPORT_JSON};
#define N_WITHOUT_REPORT 2 /* the daemon writes these itself */

/* The line of digest, two spaces and name must be among the sums. */
static int check_copy(const struct exporting *x, const char *name, const char *path,
                      const struct strbuf *sums, struct err *err)
{
    struct digest d;
    char hex[DIGEST_HEX_SIZE];
    int rc = digest_file(path, &d, NULL, err);
    if (rc != 0) {
        return rc;
    }
    digest_hex(&d, hex);
    char *line = xasprintf("%s  %s\n", hex, name);
    const char *at = strstr(sums->buf, line);
    const bool listed = at != NULL && (at == sums->buf || at[-1] == '\n');
    free(line);
    return listed ? 0
                  : err_set(err, ERR_LOCK,
                            "report/%s is not the file that report/SHA256SUMS names: it was "
                            "changed, or prereg-report was interrupted; `preregctl report %s` "
                            "writes the report again",
                            name, strrchr(x->from, '/') == NULL ? x->from : path_name(x->from));
}

/* Without report/SHA256SUMS there must be no file of a report; the daemon's own two files may be
 * there. */
int export_check_report(const struct exporting *x, struct err *err)
{
    struct strbuf sums = STRBUF_INIT;
    char *path = path_join(x->from, LAYOUT_IN_REPORT(LAYOUT_SUMS));
    const bool has_sums = file_kind_at(path) == FILE_REGULAR;
    int rc = has_sums ? file_read(path, SUMS_MAX, &sums, err) : 0;
    for (size_t i = has_sums ? 0 : N_WITHOUT_REPORT; rc == 0 && i < ARRAY_LEN(REPORTED); i++) {
        char *copy = path_join(x->to, REPORTED[i]);
        if (file_kind_at(copy) == FILE_REGULAR) {
            rc = check_copy(x, REPORTED[i], copy, &sums, err);
        }
        free(copy);
    }
    strbuf_release(&sums);
    free(path);
    return rc;
}
