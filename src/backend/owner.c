/* owner.c: see owner.h. */
#include "backend/owner.h"

#include "base/fd.h"
#include "base/path.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/banned.h"

int agx_owner_read(const char *state_dir, char ret_instance[AGX_UUID_TEXT_SIZE],
                   struct agx_error **err)
{
    _cleanup_buf_ struct agx_buf text = AGX_BUF_INIT(AGX_UUID_TEXT_SIZE);
    _cleanup_close_ int dir = open(state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct agx_error *why = NULL;
    struct agx_str line;
    int r;

    if (dir < 0)
        return agx_error_errno(err, errno, "open '%s'", state_dir);
    r = agx_fd_read_file(dir, "instance", &text, &why);
    if (r == -AGX_NOT_FOUND) {
        agx_error_free(why);
        r = agx_uuid_new(ret_instance, err);
        return r < 0 ? r
                     : agx_path_write_file(dir, "instance", agx_str_from(ret_instance), 0600, err);
    }
    line = agx_str_trim(agx_buf_peek(&text));
    if (r == 0 && line.len != AGX_UUID_TEXT_SIZE - 1)
        r = agx_error_set(&why, AGX_DATA_LOSS, "expected an instance id");
    agx_error_propagate(err, &why);
    if (r < 0)
        return agx_error_wrap(err, r, "read '%s/instance'", state_dir);
    (void)snprintf(ret_instance, AGX_UUID_TEXT_SIZE, "%.*s", AGX_STR_ARG(line));
    return 0;
}
