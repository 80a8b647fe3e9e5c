/* A scratch folder of a test: made and entered by the group's set-up, removed by its tear-down. */
#ifndef TESTS_UNIT_WORKER_EVAL_SCRATCH_H
#define TESTS_UNIT_WORKER_EVAL_SCRATCH_H

int scratch_enter(void **state);
int scratch_leave(void **state);
/* Writes a file into it. */
void scratch_write(const char *name, const char *text);

#endif
