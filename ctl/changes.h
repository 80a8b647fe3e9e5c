/* The changes of an amendment, a line each, for people. */
#ifndef CTL_CHANGES_H
#define CTL_CHANGES_H

#include <cjson/cJSON.h>
#include <stdio.h>

void changes_print(const cJSON *changes, FILE *to);

#endif
