/*
 * Reads plans from a receipt: the present one, and the one that held when something was computed
 * with it, from the text that an amendment left.
 */
#ifndef CTL_RECEIPT_PLAN_H
#define CTL_RECEIPT_PLAN_H

#include "ctl/receipt/files.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

/* Parses grid.toml or one of amendments/; the fault names the line. The caller frees *out, of a
 * failed read as well. */
int plan_read(const struct receipt_files *files, const char *name, struct plan_program **out,
              struct err *err) MUST_CHECK;

/* Reads the plan of a head and compares it with the lock as it was then. *out is NULL when that
 * is the lock's present head: the plan is the present one. */
int plan_at_head(const struct receipt_files *files, const struct lock *lock, const char *head,
                 struct plan_program **out, struct err *err) MUST_CHECK;

#endif
