/* table.c: rows of texts in columns. */
#include "cli/table.h"

#include "base/limits.h"
#include "cli/ctl.h"
#include "cli/show.h"

#include <assert.h>
#include <string.h>

#include "base/banned.h"

static int add_cell(struct agx_table *t, size_t column, struct agx_str cell)
{
    size_t from = t->text.len;
    int r = agx_show_text(&t->text, cell);

    if (r == 0) {
        size_t width = agx_show_width(agx_str_skip(agx_buf_peek(&t->text), from));

        t->widths[column] = AGX_MAX(t->widths[column], width);
        r = agx_buf_push(&t->text, 0);
    }
    return r;
}

int agx_table_add(struct agx_table *t, const struct agx_str *cells)
{
    size_t before = t->text.len;
    int r = 0;

    for (size_t i = 0; r == 0 && i < t->columns; i++)
        r = add_cell(t, i, cells[i]);
    if (r < 0)
        t->text.len = before;
    return r;
}

int agx_table_init(struct agx_table *t, const char *const *titles, size_t columns)
{
    struct agx_str cells[AGX_TABLE_COLUMNS_MAX] = { { NULL, 0 } };

    assert(columns <= AGX_TABLE_COLUMNS_MAX);
    *t = (struct agx_table){ .columns = columns, .text = AGX_BUF_INIT(AGX_CLI_TABLE_MAX) };
    for (size_t i = 0; i < columns; i++)
        cells[i] = agx_str_from(titles[i]);
    return agx_table_add(t, cells);
}

/* One row from `at` on; returns where the next begins. */
static const char *print_row(const struct agx_table *t, const char *at, FILE *out)
{
    size_t blanks = 0;

    for (size_t i = 0; i < t->columns; i++) {
        struct agx_str cell = agx_str_from(at);

        if (cell.len > 0) {
            fprintf(out, "%*s", (int)blanks, "");
            fputs(at, out);
            blanks = 0;
        }
        blanks += t->widths[i] - agx_show_width(cell) + 2;
        at += cell.len + 1;
    }
    (void)putc('\n', out);
    return at;
}

void agx_table_print(const struct agx_table *t, FILE *out)
{
    const char *at = (const char *)t->text.data, *end = at + t->text.len;

    while (at < end)
        at = print_row(t, at, out);
}

void agx_table_done(struct agx_table *t)
{
    agx_buf_done(&t->text);
}

int agx_table_end(struct agx_table *t, int r, struct agx_error **err)
{
    if (r == 0)
        agx_table_print(t, stdout);
    else
        (void)agx_error_no_memory(err);
    agx_table_done(t);
    return r;
}
