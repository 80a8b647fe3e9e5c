// The only C++ of the project: toml++ turned into the plain tree of prereg/toml.h.
#include <algorithm>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

// toml++ 3.3.0 asserts where a text can take it (a header of three brackets): such a text is
// refused, never the end of the process.
namespace
{
struct parser_confused {
};
[[noreturn]] void refuse_text()
{
    throw parser_confused{};
}
} // namespace
#define TOML_ASSERT(expr)                                                                          \
    do {                                                                                           \
        if (!(expr)) {                                                                             \
            refuse_text();                                                                         \
        }                                                                                          \
    } while (false)
#define TOML_EXCEPTIONS        1
#define TOML_MAX_NESTED_VALUES 32
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

extern "C" {
#include "prereg/toml.h"
}
#include "prereg/toml_internal.h"

namespace
{

struct build {
    struct arena *arena;
    struct diag *diag;
};

struct toml_node *convert(const build &b, const toml::node &node, const toml::key *key, int depth);

const char *copy_text(const build &b, std::string_view text, const toml::source_position &at)
{
    if (text.find('\0') != std::string_view::npos) {
        diag_add(b.diag, DIAG_ERROR, at.line, at.column, "a NUL character in a text");
    }
    char *out = static_cast<char *>(arena_alloc(b.arena, text.size() + 1));
    std::memcpy(out, text.data(), text.size());
    return out;
}

toml_node **node_array(const build &b, size_t n)
{
    return static_cast<toml_node **>(arena_array(b.arena, n, sizeof(toml_node *)));
}

bool stands_before(const toml_node *a, const toml_node *b)
{
    return std::pair(a->key_line, a->key_column) < std::pair(b->key_line, b->key_column);
}

void adopt(toml_node *parent)
{
    for (size_t i = 0; i < parent->n_items; i++) {
        parent->items[i]->parent = parent;
        parent->items[i]->index = i;
    }
}

void convert_table(const build &b, const toml::table &table, toml_node *out, int depth)
{
    out->items = node_array(b, table.size());
    for (auto &&[key, value] : table) {
        out->items[out->n_items++] = convert(b, value, &key, depth + 1);
    }
    std::stable_sort(out->items, out->items + out->n_items, stands_before);
    adopt(out);
}

void convert_array(const build &b, const toml::array &array, toml_node *out, int depth)
{
    out->items = node_array(b, array.size());
    for (auto &&value : array) {
        out->items[out->n_items++] = convert(b, value, nullptr, depth + 1);
    }
    adopt(out);
}

void convert_value(const build &b, const toml::node &node, toml_node *out, int depth)
{
    switch (node.type()) {
    case toml::node_type::table:
        out->kind = TOML_TABLE;
        convert_table(b, *node.as_table(), out, depth);
        break;
    case toml::node_type::array:
        out->kind = TOML_ARRAY;
        convert_array(b, *node.as_array(), out, depth);
        break;
    case toml::node_type::string:
        out->kind = TOML_STRING;
        out->string = copy_text(b, node.as_string()->get(), node.source().begin);
        break;
    case toml::node_type::integer:
        out->kind = TOML_INTEGER;
        out->integer = node.as_integer()->get();
        out->real = static_cast<double>(out->integer);
        break;
    case toml::node_type::floating_point:
        out->kind = TOML_FLOAT;
        out->real = node.as_floating_point()->get();
        break;
    case toml::node_type::boolean:
        out->kind = TOML_BOOLEAN;
        out->boolean = node.as_boolean()->get();
        break;
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
    case toml::node_type::none: out->kind = TOML_DATE; break;
    }
}

struct toml_node *convert(const build &b, const toml::node &node, const toml::key *key, int depth)
{
    toml_node *out = static_cast<toml_node *>(arena_alloc(b.arena, sizeof(toml_node)));
    toml::source_position at = node.source().begin;
    toml::source_position key_at = key == nullptr ? at : key->source().begin;
    out->line = at.line == 0 ? key_at.line : at.line;
    out->column = at.line == 0 ? key_at.column : at.column;
    out->key_line = key_at.line;
    out->key_column = key_at.column;
    out->key = key == nullptr ? nullptr : copy_text(b, key->str(), key_at);
    if (depth > TOML_DEPTH_MAX) {
        diag_add(b.diag, DIAG_ERROR, out->line, out->column, "nested deeper than %d levels",
                 TOML_DEPTH_MAX);
        out->kind = TOML_BOOLEAN;
        return out;
    }
    convert_value(b, node, out, depth);
    return out;
}

} // namespace

extern "C" int toml_build(const char *text, size_t len, struct arena *arena,
                          struct toml_node **root, struct diag *diag)
{
    try {
        const toml::table table = toml::parse(std::string_view(text, len));
        *root = convert(build{arena, diag}, table, nullptr, 0);
        return 0;
    } catch (const toml::parse_error &e) {
        const toml::source_position at = e.source().begin;
        const std::string_view why = e.description();
        diag_add(diag, DIAG_ERROR, at.line, at.column, "%.*s", static_cast<int>(why.size()),
                 why.data());
    } catch (const std::exception &e) {
        diag_add(diag, DIAG_ERROR, 0, 0, "cannot be read as TOML: %s", e.what());
    } catch (...) {
        diag_add(diag, DIAG_ERROR, 0, 0, "cannot be read as TOML: a malformed key or header");
    }
    return ERR_OTHER;
}
