// Package conn is shared by the programs that act as the Go SDK of agents-sandbox and as its agbox
// command: it connects to the daemon, sets timeouts, and parses errors as these clients do.
package conn

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "agentix.dev/api/agboxv1"
)

// Timeout is the deadline of a unary call whose context has none.
const Timeout = 60 * time.Second

// Client is one channel.
type Client struct {
	pb.SandboxServiceClient
	Socket string
	conn   *grpc.ClientConn
}

// Dial opens a channel as these clients do: the name is not an address, a custom dialer connects, and
// the authority on the wire is "agents-sandbox".
func Dial(socket string) (*Client, error) {
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	conn, err := grpc.NewClient("passthrough:///agents-sandbox",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dialer),
		grpc.WithUnaryInterceptor(withTimeout))
	if err != nil {
		return nil, err
	}
	return &Client{pb.NewSandboxServiceClient(conn), socket, conn}, nil
}

// Close ends the channel and all calls on it.
func (c *Client) Close() { _ = c.conn.Close() }

func withTimeout(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, Timeout)
		defer cancel()
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// Follow subscribes on a new channel, passes each event to visit until visit reports that it is done,
// and closes the channel.
func (c *Client) Follow(ctx context.Context, sandbox string, from uint64,
	visit func(*pb.SandboxEvent) (bool, error)) error {
	own, err := Dial(c.Socket)
	if err != nil {
		return err
	}
	defer own.Close()
	stream, err := own.SubscribeSandboxEvents(ctx,
		&pb.SubscribeSandboxEventsRequest{SandboxId: sandbox, FromSequence: from})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if event.OccurredAt == nil {
			return fmt.Errorf("event %s has no time", event.EventId)
		}
		if enough, err := visit(event); err != nil || enough {
			return err
		}
	}
}

// Refusal has the parts of an error that these clients use: code, text and first ErrorInfo.
type Refusal struct {
	Code     string            `json:"code"`
	Message  string            `json:"message"`
	Reason   string            `json:"reason,omitempty"`
	Domain   string            `json:"domain,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// RefusalOf parses the error of a call.
func RefusalOf(err error) Refusal {
	s := status.Convert(err)
	r := Refusal{Code: s.Code().String(), Message: s.Message()}
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			r.Reason, r.Domain, r.Metadata = info.Reason, info.Domain, info.Metadata
			break
		}
	}
	return r
}

var printing sync.Mutex

// Print writes one line of JSON, a step's result, for the test that started the program.
func Print(step string, value any) {
	printing.Lock()
	defer printing.Unlock()
	line, err := json.Marshal(map[string]any{"step": step, "value": value})
	if err != nil {
		Fail(step, err)
	}
	fmt.Println(string(line))
}

// Fail ends the program with an error.
func Fail(step string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", step, err)
	os.Exit(1)
}
