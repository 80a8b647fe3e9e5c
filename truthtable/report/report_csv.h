/*
 * Two tidy tables of a program that has its verdict, for spreadsheets and statistics programs:
 * means.csv has a row for each measure and condition, records.csv one for each measure and cell.
 * The values are those of the report. Text as RFC 4180 quotes it, lines end in a line feed.
 */
#ifndef TRUTHTABLE_REPORT_REPORT_CSV_H
#define TRUTHTABLE_REPORT_REPORT_CSV_H

#include "base/err.h"

#define REPORT_MEANS_CSV   "means.csv"
#define REPORT_RECORDS_CSV "records.csv"

/* folder: STATE/programs/<id>. out: the folder to write both to, made when absent. */
int report_write_csv(const char *folder, const char *out, struct err *err) MUST_CHECK;

#endif
