/* wire_image.h: an image with a value in every field. All of it is borrowed: do not free it. */
#ifndef AGX_TESTS_WIRE_IMAGE_H
#define AGX_TESTS_WIRE_IMAGE_H

#include "wire/image_wire.h"

#define WIRE_IMAGE_ID "sha256:1111111111111111111111111111111111111111111111111111111111111111"

static inline struct agx_words wire_borrow(char **items, size_t len)
{
    return (struct agx_words){ items, len };
}

static inline struct agx_image_view wire_image(void)
{
    static char *names[] = { (char *)"docker.io/library/python:3.13", (char *)"r:5/\xc3\xa4" };

    return (struct agx_image_view){ .id = (char *)WIRE_IMAGE_ID,
                                    .names = wire_borrow(names, 2),
                                    .digest = (char *)"sha256:22",
                                    .added_at_ns = 1700000000123456789,
                                    .size_bytes = UINT64_C(5) << 32,
                                    .sandboxes = 3 };
}

static inline struct agx_image_details wire_image_details(void)
{
    static char *env[] = { (char *)"PATH=/bin", (char *)"EMPTY=" };
    static char *entrypoint[] = { (char *)"/entry", (char *)"" };
    static char *command[] = { (char *)"serve" };
    static char *ports[] = { (char *)"80/tcp", (char *)"53/udp" };
    static char *layers[] = { (char *)"sha256:aa", (char *)"sha256:bb" };
    static char *test[] = { (char *)"CMD", (char *)"true" };
    static struct agx_pair labels[] = { { (char *)"a", (char *)"1" }, { (char *)"b", (char *)"" } };

    return (struct agx_image_details){ .user = (char *)"app:app",
                                       .working_dir = (char *)"/srv",
                                       .stop_signal = (char *)"SIGINT",
                                       .architecture = (char *)"amd64",
                                       .created = (char *)"2026-01-31T00:00:00Z",
                                       .env = wire_borrow(env, 2),
                                       .entrypoint = wire_borrow(entrypoint, 2),
                                       .command = wire_borrow(command, 1),
                                       .exposed_ports = wire_borrow(ports, 2),
                                       .labels = { labels, 2 },
                                       .healthcheck = { .set = true,
                                                        .test = wire_borrow(test, 2),
                                                        .interval_ns = 1500000000,
                                                        .timeout_ns = AGX_NS_UNSET,
                                                        .start_period_ns = 7,
                                                        .start_interval_ns = AGX_NS_UNSET,
                                                        .retries = 4 },
                                       .layers = wire_borrow(layers, 2) };
}

static inline struct agx_images_removed_view wire_images_removed(void)
{
    static char *names[] = { (char *)"docker.io/library/python:3.13" };
    static char *ids[] = { (char *)WIRE_IMAGE_ID, (char *)"sha256:33" };

    return (struct agx_images_removed_view){ wire_borrow(names, 1), wire_borrow(ids, 2), 12345 };
}

#endif
