/*
 * banned.h: functions that do not compile here. Include it after the system headers of a .c file:
 * the poison must come after their declarations. tools/check_banned finds files without it.
 */
#ifndef AGX_BASE_BANNED_H
#define AGX_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* In some builds glibc defines these as macros, and poisoning a macro causes a warning. */
#undef alloca
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets
#pragma GCC poison atoi atol atoll strtol strtoul strtoll strtoull
#pragma GCC poison gmtime localtime ctime asctime tmpnam mktemp alloca

#endif
