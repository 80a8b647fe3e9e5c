/*
 * A receipt as one file: a ustar archive with one folder in it. Written always the same: sorted,
 * owner 0, mode 0644, one time for all. Extracted into a fresh folder, and only files of a
 * receipt's names; links, devices, sparse files, other paths and absurd sizes are faults.
 */
#ifndef CTL_RECEIPT_TAR_H
#define CTL_RECEIPT_TAR_H

#include "base/clock.h"
#include "base/files/file.h"
#include "ctl/receipt/mismatch.h"

/* Writes the folder's files under `name`/ into w, which the caller publishes. ERR_LOCK: the folder
 * holds what no receipt has. */
int tar_write(const char *folder, const char *name, struct wall_time time, struct file_writer *w,
              struct err *err) MUST_CHECK;

/* Extracts the archive's files into `folder`, which must be empty. */
int tar_read(const char *path, const char *folder, struct err *err) MUST_CHECK;

#endif
