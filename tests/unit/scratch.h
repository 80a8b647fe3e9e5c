/* Scratch folders of tests, and small files in them. A call that fails fails the test. */
#ifndef TESTS_UNIT_SCRATCH_H
#define TESTS_UNIT_SCRATCH_H

/* A fresh folder below $TMPDIR; scratch_remove() removes it and frees its path. */
char *scratch_make(void);
void scratch_remove(char *folder);

/* A group's set-up and tear-down: makes and enters scratch_folder, leaves and removes it. */
extern char *scratch_folder; /* absolute */
int scratch_enter(void **state);
int scratch_leave(void **state);

/* Writes folder/name, below folders that are made for it, and gives its path; heap. */
char *scratch_write(const char *folder, const char *name, const char *text, unsigned mode);
/* The same with mode 0600, when the path is not needed. */
void scratch_put(const char *folder, const char *name, const char *text);
/* A whole file; heap. */
char *scratch_read(const char *path);

#endif
