/* ro-crate: an RO-Crate 1.1 whose payload is the receipt, unchanged, and whose metadata say what
 * its files are and how they came about. `preregctl verify` takes the receipt inside as any other.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/formats/writers.h"

static const char *const described[][2] = {
    {RECEIPT_GRID, "The plan"},
    {RECEIPT_LOCK, "The lock: every value that can influence the answer, and the digests of data "
                   "and workers"},
    {RECEIPT_JOURNAL, "Every change of state, as a chain of hashes"},
    {RECEIPT_RECORDS, "A line for each planned task, with its result"},
    {RECEIPT_VERDICT, "The verdict, computed from the records by the plan's table"},
    {RECEIPT_PROVENANCE, "What depends on time and machines"},
    {RECEIPT_SUMS, "The SHA-256 of every file of the receipt"}};

static const char *const media_types[][2] = {{".jsonl", "application/jsonl"},
                                             {".json", "application/json"},
                                             {LAYOUT_LOCK_SUFFIX, "application/json"},
                                             {".toml", "application/toml"},
                                             {".md", "text/markdown"},
                                             {".html", "text/html"},
                                             {".tar", "application/x-tar"}};

static cJSON *reference(const char *id)
{
    cJSON *o = json_object();
    json_put_string(o, "@id", id);
    return o;
}

static cJSON *entity(const char *id, const char *type)
{
    cJSON *o = json_object();
    json_put_string(o, "@id", id);
    json_put_string(o, "@type", type);
    return o;
}

/* The @id of a file of the receipt: its names need no escape in a URI (ctl/receipt/layout.c). */
static char *file_id(const char *receipt, const char *name)
{
    return xasprintf("%s/%s", receipt, name);
}

/* Copies a file of the receipt and describes it. */
static int add_file(const struct receipt_source *s, const struct format_output *out,
                    const char *receipt, struct receipt_file *f, cJSON *graph, struct err *err)
{
    char *id = file_id(receipt, f->name);
    char *from = files_path(&s->files, f->name);
    char *to = path_join(out->folder, id);
    char *folder = path_folder(to);
    char hex[DIGEST_HEX_SIZE];
    char *bytes = xasprintf("%lld", (long long)f->bytes);
    cJSON *o = entity(id, "File");
    int rc = dir_make(folder, 0755, err);
    rc = rc == 0 ? file_copy(from, to, 0644, err) : rc;
    rc = rc == 0 ? files_digest(&s->files, f, err) : rc;
    digest_hex(&f->digest, hex);
    json_put_string(o, "name", f->name);
    json_put_string(o, "contentSize", bytes);
    json_put_string(o, "sha256", hex);
    for (size_t i = 0; i < ARRAY_LEN(media_types); i++) {
        const size_t n = strlen(media_types[i][0]);
        if (strlen(f->name) > n && strcmp(f->name + strlen(f->name) - n, media_types[i][0]) == 0) {
            json_put_string(o, "encodingFormat", media_types[i][1]);
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(described); i++) {
        if (strcmp(f->name, described[i][0]) == 0) {
            json_put_string(o, "description", described[i][1]);
        }
    }
    json_push(graph, o);
    free(bytes);
    free(folder);
    free(to);
    free(from);
    free(id);
    return rc;
}

/* How the verdict came about: the plan and what was recorded, read by preregd. */
static void add_action(const struct receipt_source *s, const char *receipt, cJSON *graph)
{
    char time[WALL_TEXT_SIZE];
    char *plan = file_id(receipt, RECEIPT_GRID);
    char *lock = file_id(receipt, RECEIPT_LOCK);
    char *verdict = file_id(receipt, RECEIPT_VERDICT);
    cJSON *tool = entity("#preregd", "SoftwareApplication");
    cJSON *action = entity("#verdict", "CreateAction");
    cJSON *objects = json_array();
    json_put_string(tool, "name", "preregd");
    json_put_string(tool, "softwareVersion", s->tool);
    json_push(objects, reference(plan));
    json_push(objects, reference(lock));
    json_put_string(action, "name",
                    s->imported ? "verdict of imported records"
                                : "run of the program, to its verdict");
    json_put(action, "instrument", reference("#preregd"));
    json_put(action, "object", objects);
    json_put(action, "result", reference(verdict));
    if (!s->imported) {
        clock_wall_text(s->ended, time);
        json_put_string(action, "endTime", time);
    }
    json_push(graph, tool);
    json_push(graph, action);
    free(verdict);
    free(lock);
    free(plan);
}

static cJSON *root_dataset(const struct receipt_source *s)
{
    char time[WALL_TEXT_SIZE];
    const cJSON *title = json_member(s->verdict, "title");
    cJSON *o = entity("./", "Dataset");
    char *text =
        xasprintf("Receipt of the preregistered program %s, root %s. %s%s", s->program->name,
                  s->lock->root, cJSON_IsString(title) ? "Its outcome: " : "",
                  cJSON_IsString(title) ? title->valuestring : "");
    clock_wall_text(s->ended, time);
    json_put_string(o, "name", s->program->question != NULL ? s->program->question : s->id);
    json_put_string(o, "description", text);
    json_put_string(o, "identifier", s->lock->root);
    json_put_string(o, "datePublished", time);
    json_put(o, "mentions", reference("#verdict"));
    free(text);
    return o;
}

int write_ro_crate(const struct receipt_source *s, const struct format_output *out, struct err *err)
{
    int rc = 0;
    char *receipt = xasprintf("%s-receipt", s->id);
    cJSON *crate = json_object();
    cJSON *graph = json_array();
    cJSON *parts = json_array();
    cJSON *about = entity("ro-crate-metadata.json", "CreativeWork");
    cJSON *root = root_dataset(s);
    json_put_string(crate, "@context", "https://w3id.org/ro/crate/1.1/context");
    json_put(crate, "@graph", graph);
    json_put(about, "conformsTo", reference("https://w3id.org/ro/crate/1.1"));
    json_put(about, "about", reference("./"));
    json_push(graph, about);
    json_push(graph, root);
    for (size_t i = 0; rc == 0 && i < s->files.n; i++) {
        char *id = file_id(receipt, s->files.items[i].name);
        json_push(parts, reference(id));
        rc = add_file(s, out, receipt, &s->files.items[i], graph, err);
        free(id);
    }
    json_put(root, "hasPart", parts);
    add_action(s, receipt, graph);
    format_note(out,
                "license and authors are not in a receipt: left out; datePublished is the time "
                "at which the last task ended, or of the lock");
    free(receipt);
    if (rc != 0) {
        cJSON_Delete(crate);
        return rc;
    }
    return format_put_json(out, "ro-crate-metadata.json", crate, err);
}
