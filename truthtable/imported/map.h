/*
 * Which file belongs to which cell and stage: a map (JSON), patterns over the program's factors, or
 * both (docs/import.md). Reads no results itself.
 *
 * Owns its texts; sources refer to cells and stages of the program it was made for. Paths in a map
 * are taken from the map's folder, those of the command line from the working directory.
 */
#ifndef TRUTHTABLE_IMPORTED_MAP_H
#define TRUTHTABLE_IMPORTED_MAP_H

#include "base/arena.h"
#include "prereg/program/program.h"

#define MAP_BYTES_MAX ((size_t)16 << 20)

struct map_source {
    size_t cell;
    size_t stage; /* INDEX_NONE: every stage whose task the file holds */
    const char *results;
    const char **samples; /* paths, or patterns of the shell */
    size_t n_samples;
};

struct map {
    struct arena arena;
    const struct plan_program *program;
    cJSON *json;           /* the map file, or NULL */
    const char *label;     /* where the records come from, or NULL */
    bool label_of_records; /* the one file of records gives the label */
    struct map_source *sources;
    size_t n_sources;
    size_t cap_sources;
    const char **records; /* files of replay's schema */
    size_t n_records;
    size_t cap_records;
    cJSON *unmatched; /* array: what a pattern found no file for, in words */
};

void map_init(struct map *m, const struct plan_program *p);
void map_release(struct map *m);

int map_read(struct map *m, const char *path, struct err *err) MUST_CHECK;
/* "runs/{arch}_{seed}/results_*.json": each cell's levels are put in, then the shell's * ? [] are
 * looked up; {stage} too. One file each: two are ERR_REFUSED. samples may be NULL. */
int map_add_pattern(struct map *m, const char *folder, const char *results, const char *samples,
                    struct err *err) MUST_CHECK;
/* A pattern as seen from a folder, in whose own name nothing is the shell's. The caller frees it.
 */
char *map_pattern_path(const char *folder, const char *pattern) __attribute__((returns_nonnull));
void map_add_records(struct map *m, const char *folder, const char *path);

/* The task of the harness that a stage means: "tasks" of the map, else the stage's parameter
 * `task`, else the stage's name. */
const char *map_task(struct map *m, size_t stage, size_t cell);
/* "metrics" of the map: {program's metric: key of the results file}; NULL when it says nothing. */
const cJSON *map_metrics(const struct map *m, size_t stage);

#endif
