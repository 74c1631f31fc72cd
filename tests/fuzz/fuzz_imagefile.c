/* A file to import: each image that is found in it has a position for every layer. */
#include "base/limits.h"
#include "image/image.h"
#include "image/imagefile.h"
#include "tests/support/fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const atomic_bool stop = false;
    struct agx_imagefile_params p = { .limits = AGX_UNPACK_LIMITS_INIT,
                                      .max_bytes = 1 << 20,
                                      .stop = &stop };
    struct agx_imagefile a;
    struct agx_error *err = NULL;

    p.fd = memfd_create("fuzz", MFD_CLOEXEC);
    p.tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FUZZ_CHECK(p.fd >= 0 && p.tmp_fd >= 0 && write(p.fd, data, size) == (ssize_t)size);
    if (agx_imagefile_read(&a, &p, &err) == 0) {
        FUZZ_CHECK(!err && a.n_images > 0);
        for (size_t i = 0; i < a.n_images; i++) {
            struct agx_image_config config;

            FUZZ_CHECK(agx_image_config_parse(&config, agx_str_from(a.images[i].config), NULL) ==
                       0);
            FUZZ_CHECK(agx_words_eq(&config.diff_ids, &a.images[i].diff_ids));
            for (size_t k = 0; k < config.diff_ids.len; k++)
                FUZZ_CHECK(a.images[i].layers[k].place.fd == p.fd ||
                           a.images[i].layers[k].place.fd == a.plain_fd);
            agx_image_config_done(&config);
        }
        agx_imagefile_done(&a);
    } else {
        FUZZ_CHECK(err);
    }
    agx_error_free(err);
    close(p.fd);
    close(p.tmp_fd);
    return 0;
}
