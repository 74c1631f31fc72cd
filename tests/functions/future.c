/* future.c: a library that was built for a newer table than any worker has. */
#include <agentix/function.h>

const struct agx_function_table agentix_functions = { AGX_FUNCTION_ABI + 1,
                                                      sizeof(struct agx_function), NULL, 0 };
