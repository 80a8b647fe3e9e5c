#include "tests/unit/state/faulty_vfs.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static unsigned countdown;
static bool as_full;
static bool failed;
static sqlite3_vfs vfs;
static sqlite3_vfs *real;

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *inner;
};

void faulty_vfs_fail(unsigned n, bool full)
{
    countdown = n;
    as_full = full;
    failed = false;
}

bool faulty_vfs_has_failed(void)
{
    return failed;
}

bool faulty_vfs_count(void)
{
    if (countdown == 0 || --countdown > 0) {
        return false;
    }
    failed = true;
    return true;
}

int faulty_vfs_errno(void)
{
    return as_full ? ENOSPC : EIO;
}

static sqlite3_file *inner(sqlite3_file *f)
{
    return ((struct faulty_file *)f)->inner;
}

static int on_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at)
{
    if (faulty_vfs_count()) {
        return as_full ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
    return inner(f)->pMethods->xWrite(inner(f), data, n, at);
}

static int on_sync(sqlite3_file *f, int flags)
{
    if (!as_full && faulty_vfs_count()) {
        return SQLITE_IOERR_FSYNC;
    }
    return inner(f)->pMethods->xSync(inner(f), flags);
}

static int on_close(sqlite3_file *f)
{
    int rc = inner(f)->pMethods->xClose(inner(f));
    free(inner(f));
    return rc;
}

/* The rest goes straight through. */
static int on_read(sqlite3_file *f, void *data, int n, sqlite3_int64 at)
{
    return inner(f)->pMethods->xRead(inner(f), data, n, at);
}
static int on_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return inner(f)->pMethods->xTruncate(inner(f), size);
}
static int on_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return inner(f)->pMethods->xFileSize(inner(f), size);
}
static int on_lock(sqlite3_file *f, int level)
{
    return inner(f)->pMethods->xLock(inner(f), level);
}
static int on_unlock(sqlite3_file *f, int level)
{
    return inner(f)->pMethods->xUnlock(inner(f), level);
}
static int on_reserved(sqlite3_file *f, int *out)
{
    return inner(f)->pMethods->xCheckReservedLock(inner(f), out);
}
static int on_control(sqlite3_file *f, int op, void *arg)
{
    return inner(f)->pMethods->xFileControl(inner(f), op, arg);
}
static int on_sector(sqlite3_file *f)
{
    return inner(f)->pMethods->xSectorSize(inner(f));
}
static int on_traits(sqlite3_file *f)
{
    return inner(f)->pMethods->xDeviceCharacteristics(inner(f));
}
static int on_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return inner(f)->pMethods->xShmMap(inner(f), page, size, extend, out);
}
static int on_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return inner(f)->pMethods->xShmLock(inner(f), at, n, flags);
}
static void on_shm_barrier(sqlite3_file *f)
{
    inner(f)->pMethods->xShmBarrier(inner(f));
}
static int on_shm_unmap(sqlite3_file *f, int delete)
{
    return inner(f)->pMethods->xShmUnmap(inner(f), delete);
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_reserved,
    .xFileControl = on_control,
    .xSectorSize = on_sector,
    .xDeviceCharacteristics = on_traits,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
};

static int on_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out)
{
    (void)v;
    struct faulty_file *file = (struct faulty_file *)f;
    file->inner = calloc(1, (size_t)real->szOsFile);
    assert(file->inner != NULL);
    int rc = real->xOpen(real, name, file->inner, flags, out);
    if (rc != SQLITE_OK) {
        free(file->inner);
        f->pMethods = NULL;
        return rc;
    }
    f->pMethods = &METHODS;
    return SQLITE_OK;
}

void faulty_vfs_install(void)
{
    real = sqlite3_vfs_find(NULL);
    assert(real != NULL);
    vfs = *real;
    vfs.zName = "faulty";
    vfs.szOsFile = (int)sizeof(struct faulty_file);
    vfs.pNext = NULL;
    vfs.xOpen = on_open;
    int rc = sqlite3_vfs_register(&vfs, 1);
    assert(rc == SQLITE_OK);
    (void)rc;
}
