/*
 * fuzz_docker_json.c: any JSON of an engine, as a line of a pull's progress or as an image's
 * description. The sums stay possible, and the parsed result can be freed.
 */
#include "backend/docker/api/pull_progress.h"
#include "backend/docker/image.h"
#include "base/limits.h"
#include "tests/support/fuzz.h"

static void note_all(const json_t *lines)
{
    struct agx_docker_pull_progress layers;
    struct agx_pull sum = { 0 };

    agx_docker_pull_progress_init(&layers, (struct agx_siphash_key){ 0 });
    for (size_t i = 0; i < json_array_size(lines); i++)
        (void)agx_docker_pull_progress_note(&layers, json_array_get(lines, i));
    agx_docker_pull_progress_sum(&layers, &sum);
    FUZZ_CHECK(sum.layers_total <= AGX_DOCKER_LAYERS_MAX &&
               sum.layers_total <= json_array_size(lines));
    FUZZ_CHECK(sum.layers_done <= sum.layers_total);
    agx_docker_pull_progress_done(&layers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ json_t *value = NULL;
    struct agx_docker_image image;

    if (agx_json_parse(agx_str_bytes(data, size), AGX_JSON_MAX, AGX_DEPTH_MAX, &value, NULL) < 0)
        return 0;
    note_all(value);
    if (agx_docker_image_parse(&image, value, NULL) == 0) {
        FUZZ_CHECK(image.id);
        agx_docker_image_done(&image);
    }
    return 0;
}
