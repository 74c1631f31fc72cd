/* limits_cli.h: limits of the command line; see limits.h. */
#ifndef AGX_BASE_LIMITS_CLI_H
#define AGX_BASE_LIMITS_CLI_H

/* The command line: all pages of a list together, and the table printed from them: enough for a
 * hundred thousand sandboxes. */
#define AGX_CLI_REPLY_MAX ((size_t)256 << 20)
#define AGX_CLI_TABLE_MAX ((size_t)256 << 20)

/* Bytes of an import in one message: as much as a call's flow-control window holds. */
#define AGX_CLI_IMPORT_CHUNK ((size_t)256 << 10)

/* Timeouts of the command line. */
#define AGX_CLI_CALL_MS 30000   /* a call that answers at once, on a loaded daemon */
#define AGX_CLI_START_MS 330000 /* a start of the daemon, which checks its store after a crash */
#define AGX_CLI_LOST_MS 10000   /* a restart of the daemon during a wait */
#define AGX_CLI_STOP_MS 10000   /* a stop of the daemon, which takes 5 s at most */
#define AGX_CLI_CANCEL_MS 3000  /* the last output of a cancelled command, on a busy machine */

#endif
