"""What tests of agentix-server share: the program, a client of bare sockets, a scripted worker."""
