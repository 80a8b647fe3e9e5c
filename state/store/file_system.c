/* Network file systems are recognised by the magic number of statfs(2): their locks and syncs do
 * not hold what invariant 2 needs. */
#include "base/files/shared_dir.h"
#include "state/store/internal.h"

int fs_check_local(const char *dir, struct err *err)
{
    assert(dir != NULL);
    const char *name = shared_network_name(dir, err);
    if (name == NULL) {
        return err->code;
    }
    return err_set(err, ERR_REFUSED,
                   "the folder %s is on %s, whose locks and syncs cannot be relied on: set "
                   "PREREGD_STATE to a local disk ([run] work may be a shared one), or start "
                   "`preregd serve --database FOLDER`, FOLDER on a local disk",
                   dir, name);
}
