/*
 * Names of hosts in a receipt. Without --with-host every "host" of provenance.json becomes "host
 * 1", "host 2", in the order in which the attempts name them: whether two attempts ran on the same
 * machine stays visible. The files that follow from provenance.json (environment.jsonl, apparatus/)
 * are made after that.
 */
#ifndef CTL_RECEIPT_HOSTS_H
#define CTL_RECEIPT_HOSTS_H

#include "base/err.h"

/* Rewrites the file at path; one that names no host keeps its bytes. */
int hosts_hide(const char *path, struct err *err) MUST_CHECK;

#endif
