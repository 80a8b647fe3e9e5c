/* report_pages FOLDER: the pages of made-up programs, one of every kind, for
 * tests/e2e/test_pictures.py to look at: FOLDER/NAME/report.html. */
#include <stdio.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/truthtable/report/fixture.h"
#include "truthtable/report/document/render.h"
#include "truthtable/report/report_model.h"
#include "truthtable/report/sections/sections.h"

#define INSTRUMENTS TEST_SOURCE_DIR "/tests/unit/truthtable/report/fixtures/instruments.json"

struct page {
    const char *name;
    struct fixture fixture;
    const char *amended; /* the level, or NULL */
    bool instruments;
};

static const struct page pages[] = {
    {"bound",
     {.toml = "floor.toml",
      .height = 0.3,
      .blocked_stage = "gsm8k",
      .blocked_cause = "not_measurable",
      .n_blocked = 12},
     "seen",
     true},
    {"open",
     {.toml = "floor.toml",
      .height = 1.2,
      .blocked_stage = "hellaswag",
      .blocked_cause = "cancelled",
      .n_blocked = 1,
      .unblinded = true},
     "nothing_scored",
     false},
    {"void",
     {.toml = "floor.toml",
      .height = 0.3,
      .blocked_stage = "mmlu",
      .blocked_cause = "crash",
      .n_blocked = 5,
      .unverified = true},
     NULL,
     false},
    {"many", {.toml = "many.toml", .height = 1}, NULL, false},
    {"hostile", {.toml = "hostile.toml", .height = 0.3}, NULL, false},
};

static int set_instruments(struct report_model *m, struct err *err)
{
    cJSON *json = NULL;
    int rc = json_read_file(INSTRUMENTS, (size_t)1 << 20, &json, err);
    if (rc == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(json, "root");
        json_put_string(json, "root", m->lock->root);
        report_model_set_instruments(m, json, NULL);
    }
    return rc;
}

static int write_page(const struct page *page, const char *folder, struct err *err)
{
    struct report_model m;
    struct doc doc;
    struct strbuf html = STRBUF_INIT;
    char *path = path_join(folder, "report.html");
    doc_init(&doc);
    int rc = report_model_read(&m, folder, err);
    if (rc == 0 && page->instruments) {
        rc = set_instruments(&m, err);
    }
    if (rc == 0) {
        sections_build(&doc, &m);
        render_html(&doc, &html);
        rc = file_write_atomic(path, html.buf, html.len, 0644, err);
    }
    strbuf_release(&html);
    doc_release(&doc);
    report_model_release(&m);
    free(path);
    return rc;
}

int main(int argc, char **argv)
{
    struct err err = {0};
    int rc = argc == 2 ? 0 : err_set(&err, ERR_USAGE, "report_pages FOLDER");
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(pages); i++) {
        const struct fixture_change change = {"flame = 0.034", "flame = 0.031", pages[i].amended,
                                              NULL};
        char *folder = path_join(argv[1], pages[i].name);
        rc = fixture_make(&pages[i].fixture, folder, &err);
        if (rc == 0 && pages[i].amended != NULL) {
            rc = fixture_amend(folder, &change, &err);
        }
        if (rc == 0) {
            rc = write_page(&pages[i], folder, &err);
        }
        free(folder);
    }
    if (rc != 0) {
        fprintf(stderr, "report_pages: %s\n", err.msg);
    }
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
