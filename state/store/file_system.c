/* Network file systems are recognised by the magic number of statfs(2): their locks and syncs do
 * not hold what invariant 2 needs. */
#include <errno.h>
#include <stddef.h>
#include <sys/vfs.h>

#include "state/store/internal.h"

/* From linux/magic.h and the file systems' own headers; not all of them are in every distribution's
 * copy. */
static const struct {
    unsigned long magic;
    const char *name;
} NETWORK[] = {
    {0x6969, "NFS"},        {0xff534d42, "CIFS"},  {0xfe534d42, "SMB2"}, {0x517b, "SMB"},
    {0x65735546, "FUSE"},   {0x01021997, "9p"},    {0x5346414f, "AFS"},  {0x00c36400, "Ceph"},
    {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},  {0x564c, "NCP"},      {0x73757245, "Coda"},
    {0x19830326, "BeeGFS"}, {0x7461636f, "OCFS2"}, {0x01161970, "GFS2"}, {0x20030528, "OrangeFS"},
    {0x786f4256, "vboxsf"},
};

int fs_check_local(const char *dir, struct err *err)
{
    assert(dir != NULL);
    struct statfs fs;
    if (statfs(dir, &fs) != 0) {
        return err_set_errno(err, errno, "look at the file system of %s", dir);
    }
    unsigned long magic = (unsigned long)fs.f_type & 0xffffffffUL;
    for (size_t i = 0; i < ARRAY_LEN(NETWORK); i++) {
        if (NETWORK[i].magic == magic) {
            return err_set(
                err, ERR_REFUSED,
                "the state folder %s lies on %s, whose locks and syncs cannot be relied on: set "
                "PREREGD_STATE to a local disk ([run] work may point to a shared one)",
                dir, NETWORK[i].name);
        }
    }
    return 0;
}
