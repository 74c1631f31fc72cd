/* table.h: tables of text for people; show.h describes how text is escaped. */
#ifndef AGX_CLI_TABLE_H
#define AGX_CLI_TABLE_H

#include "base/buf.h"

#include <stdio.h>

enum { AGX_TABLE_COLUMNS_MAX = 8 };

struct agx_table {
    size_t columns;
    size_t widths[AGX_TABLE_COLUMNS_MAX];
    struct agx_buf text; /* NUL-terminated cells; the titles first */
};

int agx_table_init(struct agx_table *t, const char *const *titles, size_t columns) AGX_MUST_CHECK;
/* `cells` has one element per column. */
int agx_table_add(struct agx_table *t, const struct agx_str *cells) AGX_MUST_CHECK;
/* Two blanks between columns, none at the end of a line. */
void agx_table_print(const struct agx_table *t, FILE *out);
void agx_table_done(struct agx_table *t);
/* Ends a listing whose rows gave `r`: prints it, or reports a lack of memory. Frees the table.
 * Returns `r`. */
int agx_table_end(struct agx_table *t, int r, struct agx_error **err) AGX_MUST_CHECK;

#endif
