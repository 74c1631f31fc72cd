"""The sandbox side: what runs inside agentix-server's worker process."""
