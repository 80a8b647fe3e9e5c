/* A SQLite VFS over the default one whose writes and syncs fail when told to: the Nth from now,
 * once. */
#ifndef TESTS_UNIT_STATE_FAULTY_VFS_H
#define TESTS_UNIT_STATE_FAULTY_VFS_H

#include <stdbool.h>

/* Registers it as the default. */
void faulty_vfs_install(void);
/* n counts from 1; 0: nothing fails. `full`: as a full disk (writes only), else as an I/O error. */
void faulty_vfs_fail(unsigned n, bool full);
/* Whether the failure was reached. */
bool faulty_vfs_has_failed(void);

/* The same countdown for calls that are not SQLite's. */
bool faulty_vfs_count(void);
/* ENOSPC or EIO, as it was told to fail. */
int faulty_vfs_errno(void);

#endif
