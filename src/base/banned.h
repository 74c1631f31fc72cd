/*
 * banned.h: functions that do not compile here. Include it after the system headers of a .c file:
 * the poison must come after their declarations. tools/check_banned finds the files that forgot.
 */
#ifndef AGX_BASE_BANNED_H
#define AGX_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* glibc makes macros of these in some builds, and poisoning a macro is a warning. */
#undef alloca
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok gets
#pragma GCC poison atoi atol atoll strtol strtoul strtoll strtoull
#pragma GCC poison gmtime localtime ctime asctime tmpnam mktemp alloca

#endif
