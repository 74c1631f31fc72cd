/* abi.h: what every installed header needs: the mark of an exported function, and C++. */
#ifndef AGENTIX_ABI_H
#define AGENTIX_ABI_H

/* A function that libagentix exports; libagentix.map lists the same names. */
#if defined(__GNUC__)
#define AGX_PUBLIC __attribute__((visibility("default")))
#else
#define AGX_PUBLIC
#endif

#ifdef __cplusplus
#define AGX_BEGIN_DECLS extern "C" {
#define AGX_END_DECLS }
#else
#define AGX_BEGIN_DECLS
#define AGX_END_DECLS
#endif

#endif
