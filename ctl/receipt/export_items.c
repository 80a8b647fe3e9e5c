/* The items of accepted results, copied while the records are written. A file is named by the
 * digest that its result states, so results with the same items share one; verify reads every byte
 * of it again. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/export_parts.h"
#include "ctl/receipt/layout.h"
#include "truthtable/instruments/items_file.h"

int export_items(const struct exporting *x, const char *result_path, const cJSON *result,
                 struct err *err)
{
    const char *name = NULL;
    struct digest said;
    char hex[DIGEST_HEX_SIZE];
    const cJSON *items = json_member(result, "items");
    if (items == NULL || cJSON_IsNull(items)) {
        return 0;
    }
    int rc = items_of_result(result, &name, &said, err);
    if (rc != 0) {
        return err_wrap(err, "%s", result_path);
    }
    digest_hex(&said, hex);
    /* the link leads into the attempt's folder, where the items are */
    char *real = realpath(result_path, NULL);
    char *beside = path_folder(real != NULL ? real : result_path);
    char *from = path_join(beside, name);
    char *folder = path_join(x->to, RECEIPT_ITEMS);
    char *to = xasprintf("%s/%s.jsonl", folder, hex);
    if (file_kind_at(from) != FILE_REGULAR) {
        rc = err_set(err, ERR_NOT_FOUND,
                     "%s: no such items; a receipt without --items has no need "
                     "of them",
                     from);
    } else if (file_kind_at(to) == FILE_ABSENT && (rc = dir_make(folder, 0755, err)) == 0) {
        rc = file_copy(from, to, 0644, err);
    }
    free(to);
    free(folder);
    free(from);
    free(beside);
    free(real);
    return rc;
}
