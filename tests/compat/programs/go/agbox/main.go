// usage: agbox SOCKET COMMAND ARGUMENT...: makes the calls of the agbox command, in its order.
//
//	create ID | stop ID | resume ID | delete ID     and waits until an event reports the wanted state
//	run ID COMMAND...                               exits with the command's exit code; SIGINT and SIGTERM cancel it
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	pb "agentix.dev/api/agboxv1"
	"agentix.dev/compat/conn"
)

var background = context.Background()

func check(step string, err error) {
	if err != nil {
		conn.Print("refused", conn.RefusalOf(err))
		conn.Fail(step, err)
	}
}

// await queries the state once, and then uses only sandbox_state of the events.
func await(c *conn.Client, id string, target pb.SandboxState) {
	got, err := c.GetSandbox(background, &pb.GetSandboxRequest{SandboxId: id})
	check("get", err)
	if got.Sandbox.State == target {
		conn.Print("state", target.String())
		return
	}
	if got.Sandbox.State == pb.SandboxState_SANDBOX_STATE_FAILED {
		check("wait", fmt.Errorf("failed: %s", got.Sandbox.ErrorMessage))
	}
	err = c.Follow(background, id, got.Sandbox.LastEventSequence, func(e *pb.SandboxEvent) (bool, error) {
		if e.SandboxState == pb.SandboxState_SANDBOX_STATE_FAILED {
			return false, fmt.Errorf("failed: %s", e.GetSandboxPhase().GetErrorMessage())
		}
		return e.SandboxState == target, nil
	})
	check("wait", err)
	conn.Print("state", target.String())
}

// exitCode is the exit code of `agbox exec run` for a command that has ended.
func exitCode(e *pb.ExecStatus) int {
	switch {
	case e.State == pb.ExecState_EXEC_STATE_FINISHED:
		return int(e.ExitCode)
	case e.State == pb.ExecState_EXEC_STATE_FAILED && e.ExitCode != 0:
		return int(e.ExitCode)
	default:
		return 125
	}
}

// follow waits as `exec run` does: it queries the command again after every event.
func follow(ctx context.Context, c *conn.Client, id string) (*pb.ExecStatus, error) {
	got, err := c.GetExec(background, &pb.GetExecRequest{ExecId: id})
	if err != nil || got.Exec.State != pb.ExecState_EXEC_STATE_RUNNING {
		return got.GetExec(), err
	}
	current := got.Exec
	err = c.Follow(ctx, current.SandboxId, current.LastEventSequence, func(*pb.SandboxEvent) (bool, error) {
		got, err := c.GetExec(background, &pb.GetExecRequest{ExecId: id})
		if err != nil {
			return false, err
		}
		current = got.Exec
		return current.State != pb.ExecState_EXEC_STATE_RUNNING, nil
	})
	return current, err
}

// interrupted cancels the command. It returns the signal's exit code, or the command's own if it had
// already ended.
func interrupted(c *conn.Client, id string, number syscall.Signal) int {
	_, err := c.CancelExec(background, &pb.CancelExecRequest{ExecId: id})
	if err != nil && conn.RefusalOf(err).Reason == "EXEC_ALREADY_TERMINAL" {
		got, err := c.GetExec(background, &pb.GetExecRequest{ExecId: id})
		check("get", err)
		return exitCode(got.Exec)
	}
	check("cancel", err)
	return 128 + int(number)
}

func run(c *conn.Client, sandbox string, command []string) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	made, err := c.CreateExec(background, &pb.CreateExecRequest{SandboxId: sandbox, Command: command})
	check("exec", err)
	conn.Print("exec", made.ExecId)

	ctx, cancel := context.WithCancel(background)
	defer cancel()
	type end struct {
		exec *pb.ExecStatus
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		exec, err := follow(ctx, c, made.ExecId)
		ended <- end{exec, err}
	}()
	select {
	case number := <-signals:
		return interrupted(c, made.ExecId, number.(syscall.Signal))
	case e := <-ended:
		check("wait", e.err)
		return exitCode(e.exec)
	}
}

func main() {
	if len(os.Args) < 4 {
		conn.Fail("usage", errors.New("agbox SOCKET COMMAND ID ARGUMENT..."))
	}
	c, err := conn.Dial(os.Args[1])
	check("dial", err)
	id := os.Args[3]
	target := pb.SandboxState_SANDBOX_STATE_READY
	switch os.Args[2] {
	case "run":
		os.Exit(run(c, id, os.Args[4:]))
	case "create":
		_, err = c.CreateSandbox(background,
			&pb.CreateSandboxRequest{SandboxId: id, CreateSpec: &pb.CreateSpec{Image: "image"}})
	case "stop":
		target = pb.SandboxState_SANDBOX_STATE_STOPPED
		_, err = c.StopSandbox(background, &pb.StopSandboxRequest{SandboxId: id})
	case "resume":
		_, err = c.ResumeSandbox(background, &pb.ResumeSandboxRequest{SandboxId: id})
	case "delete":
		target = pb.SandboxState_SANDBOX_STATE_DELETED
		_, err = c.DeleteSandbox(background, &pb.DeleteSandboxRequest{SandboxId: id})
	default:
		conn.Fail("usage", errors.New("no such command"))
	}
	check(os.Args[2], err)
	await(c, id, target)
}
