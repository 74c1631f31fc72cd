/* method.h: the paths of our methods, for the server's tables and for clients. */
#ifndef AGX_WIRE_METHOD_H
#define AGX_WIRE_METHOD_H

#define AGX_SERVICE_SANDBOX "agbox.v1.SandboxService"
#define AGX_METHOD_PING "/agbox.v1.SandboxService/Ping"
#define AGX_METHOD_CREATE_SANDBOX "/agbox.v1.SandboxService/CreateSandbox"
#define AGX_METHOD_GET_SANDBOX "/agbox.v1.SandboxService/GetSandbox"
#define AGX_METHOD_LIST_SANDBOXES "/agbox.v1.SandboxService/ListSandboxes"
#define AGX_METHOD_RESUME_SANDBOX "/agbox.v1.SandboxService/ResumeSandbox"
#define AGX_METHOD_STOP_SANDBOX "/agbox.v1.SandboxService/StopSandbox"
#define AGX_METHOD_DELETE_SANDBOX "/agbox.v1.SandboxService/DeleteSandbox"
#define AGX_METHOD_DELETE_SANDBOXES "/agbox.v1.SandboxService/DeleteSandboxes"
#define AGX_METHOD_SUBSCRIBE "/agbox.v1.SandboxService/SubscribeSandboxEvents"
#define AGX_METHOD_CREATE_EXEC "/agbox.v1.SandboxService/CreateExec"
#define AGX_METHOD_CANCEL_EXEC "/agbox.v1.SandboxService/CancelExec"
#define AGX_METHOD_GET_EXEC "/agbox.v1.SandboxService/GetExec"
#define AGX_METHOD_LIST_ACTIVE_EXECS "/agbox.v1.SandboxService/ListActiveExecs"

#define AGX_SERVICE_CONTROL "agentix.v1.ControlService"
#define AGX_METHOD_WATCH_EVENTS "/agentix.v1.ControlService/WatchEvents"
#define AGX_METHOD_READ_EXEC_OUTPUT "/agentix.v1.ControlService/ReadExecOutput"
#define AGX_METHOD_GET_WITH_USE "/agentix.v1.ControlService/GetSandbox"
#define AGX_METHOD_LIST_PAGE "/agentix.v1.ControlService/ListSandboxes"
#define AGX_METHOD_WAIT_SANDBOX "/agentix.v1.ControlService/WaitSandbox"
#define AGX_METHOD_WAIT_EXEC "/agentix.v1.ControlService/WaitExec"
#define AGX_METHOD_WRITE_EXEC_INPUT "/agentix.v1.ControlService/WriteExecInput"
#define AGX_METHOD_GET_STATS "/agentix.v1.ControlService/GetStats"
#define AGX_METHOD_BACKUP "/agentix.v1.ControlService/Backup"

#define AGX_SERVICE_IMAGE "agentix.v1.ImageService"
#define AGX_METHOD_PULL_IMAGE "/agentix.v1.ImageService/PullImage"
#define AGX_METHOD_IMPORT_IMAGE "/agentix.v1.ImageService/ImportImage"
#define AGX_METHOD_LIST_IMAGES "/agentix.v1.ImageService/ListImages"
#define AGX_METHOD_INSPECT_IMAGE "/agentix.v1.ImageService/InspectImage"
#define AGX_METHOD_REMOVE_IMAGE "/agentix.v1.ImageService/RemoveImage"
#define AGX_METHOD_PRUNE_IMAGES "/agentix.v1.ImageService/PruneImages"

#endif
