/* Writes a program's report: report.html, report.md, report.json and SHA256SUMS over every file of
 * the report folder. Same inputs, same bytes: the only times in it are those of the lock and of
 * provenance.json. */
#ifndef TRUTHTABLE_REPORT_REPORT_H
#define TRUTHTABLE_REPORT_REPORT_H

#include "base/err.h"

/* folder: STATE/programs/<id>. out: the folder to write to, made when absent; NULL: folder/report.
 */
int report_write(const char *folder, const char *out, struct err *err) MUST_CHECK;

#endif
