/* limits_cli.h: limits of the command line; see limits.h. */
#ifndef AGX_BASE_LIMITS_CLI_H
#define AGX_BASE_LIMITS_CLI_H

/* The command line: all pages of a list together, and the table that it prints of them: a hundred
 * thousand sandboxes. */
#define AGX_CLI_REPLY_MAX ((size_t)256 << 20)
#define AGX_CLI_TABLE_MAX ((size_t)256 << 20)

/* What the command line sends of an import in one message: as much as a call's window takes. */
#define AGX_CLI_IMPORT_CHUNK ((size_t)256 << 10)

/* How long the command line waits: for an answer that needs no waiting, which a daemon under load
 * still gives; for a daemon that starts, which checks its store after a crash; for one that another
 * started; for one to stop, which takes 5 s at most; for one to come back in the middle of a wait;
 * for a cancelled command's last output, which a busy machine takes a while to bring. */
#define AGX_CLI_CALL_MS 30000
#define AGX_CLI_START_MS 330000
#define AGX_CLI_LOST_MS 10000
#define AGX_CLI_STOP_MS 10000
#define AGX_CLI_CANCEL_MS 3000

#endif
