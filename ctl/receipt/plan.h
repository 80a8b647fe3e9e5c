/*
 * The plan of a receipt out of its listing: the present one, and the one that stood when something
 * was computed with it, out of the text that an amendment left.
 */
#ifndef CTL_RECEIPT_PLAN_H
#define CTL_RECEIPT_PLAN_H

#include "ctl/receipt/files.h"
#include "prereg/lock.h"
#include "prereg/program.h"

/* Parses grid.toml or one of amendments/; the fault names the line. The caller frees *out, of a
 * failed read as well. */
int plan_read(const struct receipt_files *files, const char *name, struct program **out,
              struct fault *f) MUST_CHECK;

/* The same of the head that the lock had then, held against the lock as it was then. *out is NULL
 * when that is the lock's present head: the plan is the present one. */
int plan_at_head(const struct receipt_files *files, const struct lock *lock, const char *head,
                 struct program **out, struct fault *f) MUST_CHECK;

#endif
