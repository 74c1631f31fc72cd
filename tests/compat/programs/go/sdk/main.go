// usage: sdk SOCKET SCENARIO: makes the calls of agents-sandbox's Go SDK and prints each step.
//
//	life    a sandbox from create to delete, with commands in it
//	errors  one call for each reason of a refusal
//	labels  three sandboxes, deleted by a label, with parallel waits
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "agentix.dev/api/agboxv1"
	"agentix.dev/compat/conn"
)

var background = context.Background()

// await waits as the SDK does: it queries the state, subscribes from there, and queries again at each
// event.
func await(c *conn.Client, baseline *pb.SandboxHandle, target pb.SandboxState) (*pb.SandboxHandle, error) {
	id, current := baseline.SandboxId, baseline
	if current.State == target {
		return current, nil
	}
	if current.State == pb.SandboxState_SANDBOX_STATE_FAILED {
		return current, errors.New("the sandbox failed")
	}
	err := c.Follow(background, id, baseline.LastEventSequence, func(e *pb.SandboxEvent) (bool, error) {
		if e.Sequence <= baseline.LastEventSequence {
			return false, fmt.Errorf("event %d is not after %d", e.Sequence, baseline.LastEventSequence)
		}
		got, err := c.GetSandbox(background, &pb.GetSandboxRequest{SandboxId: id})
		if err != nil {
			return false, err
		}
		current = got.Sandbox
		if current.State == pb.SandboxState_SANDBOX_STATE_FAILED && target != current.State {
			return false, errors.New("the sandbox failed")
		}
		return current.State == target, nil
	})
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the stream ended before %v", target)
	}
	return current, err
}

func awaitExec(c *conn.Client, id string) (*pb.ExecStatus, error) {
	got, err := c.GetExec(background, &pb.GetExecRequest{ExecId: id})
	if err != nil {
		return nil, err
	}
	current := got.Exec
	if current.LastEventSequence == 0 {
		return nil, errors.New("an exec without a sequence")
	}
	if current.State != pb.ExecState_EXEC_STATE_RUNNING {
		return current, nil
	}
	err = c.Follow(background, current.SandboxId, current.LastEventSequence,
		func(e *pb.SandboxEvent) (bool, error) {
			if e.GetExec().GetExecId() != id {
				return false, nil
			}
			got, err := c.GetExec(background, &pb.GetExecRequest{ExecId: id})
			if err != nil {
				return false, err
			}
			current = got.Exec
			return current.State != pb.ExecState_EXEC_STATE_RUNNING, nil
		})
	return current, err
}

func check(step string, err error) {
	if err != nil {
		conn.Fail(step, err)
	}
}

func create(c *conn.Client, id string, labels map[string]string) *pb.SandboxHandle {
	spec := &pb.CreateSpec{Image: "image", Labels: labels, IdleTtl: durationpb.New(0)}
	made, err := c.CreateSandbox(background, &pb.CreateSandboxRequest{SandboxId: id, CreateSpec: spec})
	check("create", err)
	conn.Print("created", map[string]any{"state": made.Sandbox.State.String(),
		"sequence": made.Sandbox.LastEventSequence, "labels": made.Sandbox.Labels})
	ready, err := await(c, made.Sandbox, pb.SandboxState_SANDBOX_STATE_READY)
	check("ready", err)
	conn.Print("ready", ready.State.String())
	return ready
}

func run(c *conn.Client, sandbox string, command ...string) {
	made, err := c.CreateExec(background, &pb.CreateExecRequest{SandboxId: sandbox, Command: command,
		Cwd: "/workspace", EnvOverrides: map[string]string{"A": "1"}})
	check("exec", err)
	ended, err := awaitExec(c, made.ExecId)
	check("exec wait", err)
	conn.Print("ran", map[string]any{"state": ended.State.String(), "exit": ended.ExitCode, "error": ended.Error,
		"cwd": ended.Cwd, "env": ended.EnvOverrides,
		"logs": strings.HasSuffix(made.StdoutLogPath, made.ExecId+".stdout.log")})
}

func cancel(c *conn.Client, sandbox string) {
	made, err := c.CreateExec(background, &pb.CreateExecRequest{SandboxId: sandbox, Command: []string{"sleep", "600"}})
	check("exec", err)
	active, err := c.ListActiveExecs(background, &pb.ListActiveExecsRequest{SandboxId: &sandbox})
	check("active", err)
	conn.Print("active", len(active.Execs))
	_, err = c.CancelExec(background, &pb.CancelExecRequest{ExecId: made.ExecId})
	check("cancel", err)
	ended, err := awaitExec(c, made.ExecId)
	check("cancel wait", err)
	conn.Print("cancelled", ended.State.String())
	_, err = c.CancelExec(background, &pb.CancelExecRequest{ExecId: made.ExecId})
	conn.Print("again", conn.RefusalOf(err).Reason)
}

// settle makes the call, queries and waits, as stop, resume and delete do.
func settle(c *conn.Client, step, id string, target pb.SandboxState,
	call func(context.Context, string) error) {
	check(step, call(background, id))
	got, err := c.GetSandbox(background, &pb.GetSandboxRequest{SandboxId: id})
	check(step, err)
	current, err := await(c, got.Sandbox, target)
	check(step, err)
	conn.Print(step, current.State.String())
}

func remove(c *conn.Client, id string) {
	settle(c, "deleted", id, pb.SandboxState_SANDBOX_STATE_DELETED, func(ctx context.Context, id string) error {
		_, err := c.DeleteSandbox(ctx, &pb.DeleteSandboxRequest{SandboxId: id})
		return err
	})
}

func life(c *conn.Client) {
	pong, err := c.Ping(background, &pb.PingRequest{})
	check("ping", err)
	conn.Print("ping", pong.Daemon)
	create(c, "golife", map[string]string{"by": "go"})
	run(c, "golife", "true")
	run(c, "golife", "sh", "-c", "exit 3")
	cancel(c, "golife")
	settle(c, "stopped", "golife", pb.SandboxState_SANDBOX_STATE_STOPPED, func(ctx context.Context, id string) error {
		_, err := c.StopSandbox(ctx, &pb.StopSandboxRequest{SandboxId: id})
		return err
	})
	settle(c, "resumed", "golife", pb.SandboxState_SANDBOX_STATE_READY, func(ctx context.Context, id string) error {
		_, err := c.ResumeSandbox(ctx, &pb.ResumeSandboxRequest{SandboxId: id})
		return err
	})
	remove(c, "golife")
}

func refusals(c *conn.Client) {
	create(c, "goerrors", nil)
	made, err := c.CreateExec(background, &pb.CreateExecRequest{SandboxId: "goerrors", Command: []string{"true"},
		ExecId: "goerrors-x"})
	check("exec", err)
	_, err = awaitExec(c, made.ExecId)
	check("exec wait", err)
	spec := &pb.CreateSpec{Image: "image"}
	calls := []func() error{
		func() error {
			_, err := c.GetSandbox(background, &pb.GetSandboxRequest{SandboxId: "nobody"})
			return err
		},
		func() error {
			_, err := c.CreateSandbox(background, &pb.CreateSandboxRequest{SandboxId: "goerrors", CreateSpec: spec})
			return err
		},
		func() error {
			_, err := c.ResumeSandbox(background, &pb.ResumeSandboxRequest{SandboxId: "goerrors"})
			return err
		},
		func() error {
			_, err := c.GetExec(background, &pb.GetExecRequest{ExecId: "nothing"})
			return err
		},
		func() error {
			_, err := c.CreateExec(background, &pb.CreateExecRequest{SandboxId: "goerrors", Command: []string{"true"},
				ExecId: "goerrors-x"})
			return err
		},
		func() error {
			_, err := c.CancelExec(background, &pb.CancelExecRequest{ExecId: "goerrors-x"})
			return err
		},
		func() error {
			return c.Follow(background, "goerrors", 1000, func(*pb.SandboxEvent) (bool, error) { return true, nil })
		},
		func() error {
			_, err := c.DeleteSandboxes(background, &pb.DeleteSandboxesRequest{})
			return err
		},
		func() error {
			remove(c, "goerrors")
			_, err := c.CreateExec(background, &pb.CreateExecRequest{SandboxId: "goerrors", Command: []string{"true"}})
			return err
		},
	}
	for _, call := range calls {
		conn.Print("refused", conn.RefusalOf(call()))
	}
}

func labels(c *conn.Client) {
	for _, id := range []string{"golabel2", "golabel0", "golabel1"} {
		create(c, id, map[string]string{"group": "go", "id": id})
	}
	gone, err := c.DeleteSandboxes(background,
		&pb.DeleteSandboxesRequest{LabelSelector: map[string]string{"group": "go"}})
	check("delete", err)
	conn.Print("deleting", map[string]any{"ids": gone.DeletedSandboxIds, "count": gone.DeletedCount})
	var all sync.WaitGroup
	for _, id := range gone.DeletedSandboxIds {
		all.Go(func() {
			got, err := c.GetSandbox(background, &pb.GetSandboxRequest{SandboxId: id})
			check("get", err)
			_, err = await(c, got.Sandbox, pb.SandboxState_SANDBOX_STATE_DELETED)
			check("deleted", err)
		})
	}
	all.Wait()
	left, err := c.ListSandboxes(background,
		&pb.ListSandboxesRequest{LabelSelector: map[string]string{"group": "go"}})
	check("list", err)
	conn.Print("left", len(left.Sandboxes))
}

func main() {
	scenarios := map[string]func(*conn.Client){"life": life, "errors": refusals, "labels": labels}
	if len(os.Args) != 3 || scenarios[os.Args[2]] == nil {
		conn.Fail("usage", errors.New("sdk SOCKET life|errors|labels"))
	}
	client, err := conn.Dial(os.Args[1])
	check("dial", err)
	defer client.Close()
	scenarios[os.Args[2]](client)
}
