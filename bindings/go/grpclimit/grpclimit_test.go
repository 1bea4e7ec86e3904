package grpclimit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tatcell.example/tatcell"
	"tatcell.example/tatcell/grpclimit"
)

// The types of google.golang.org/grpc, by their shapes. `make compare` uses the real ones.
type (
	unaryInfo        struct{ FullMethod string }
	unaryHandler     func(ctx context.Context, request any) (any, error)
	unaryInterceptor func(ctx context.Context, request any, info *unaryInfo, handler unaryHandler) (any, error)
	serverStream     interface {
		Context() context.Context
		SendMsg(m any) error
	}
	streamHandler     func(server any, stream serverStream) error
	streamInterceptor func(server any, stream serverStream, info *unaryInfo, handler streamHandler) error
	stream            struct{ ctx context.Context }
)

func (s stream) Context() context.Context { return s.ctx }
func (stream) SendMsg(any) error          { return nil }

type keyOf struct{}

var errRefused = errors.New("refused")

func limits(t *testing.T) grpclimit.Limits {
	limiter, err := tatcell.New("1/h burst 2", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return grpclimit.Limits{
		Limiter: limiter,
		Key: func(ctx context.Context) (string, bool) {
			key, ok := ctx.Value(keyOf{}).(string)
			return key, ok
		},
		Refused: func(d *tatcell.Decision) error {
			if d.RetryAfter == 0 {
				t.Error("a refusal without its time")
			}
			return errRefused
		},
	}
}

// runs checks that of four calls of a key two pass, and all calls without a key.
func runs(t *testing.T, call func(context.Context) error) {
	for _, key := range []string{"a", "b"} {
		ctx := context.WithValue(context.Background(), keyOf{}, key)
		for i, want := range []error{nil, nil, errRefused, errRefused} {
			if got := call(ctx); got != want {
				t.Errorf("call %d of %s: %v", i, key, got)
			}
			if err := call(context.Background()); err != nil {
				t.Error("a call without a key:", err)
			}
		}
	}
}

func TestUnaryCalls(t *testing.T) {
	unary, err := grpclimit.Unary[*unaryInfo, unaryHandler](limits(t))
	if err != nil {
		t.Fatal(err)
	}
	var interceptor unaryInterceptor = unary
	runs(t, func(ctx context.Context) error {
		answer, err := interceptor(ctx, 7, &unaryInfo{}, func(_ context.Context, n any) (any, error) { return n, nil })
		if err == nil && answer != 7 {
			t.Error("the handler's answer is lost")
		}
		return err
	})
}

func TestStreams(t *testing.T) {
	each, err := grpclimit.Stream[serverStream, *unaryInfo, streamHandler](limits(t))
	if err != nil {
		t.Fatal(err)
	}
	var interceptor streamInterceptor = each
	runs(t, func(ctx context.Context) error {
		return interceptor(nil, stream{ctx}, &unaryInfo{}, func(any, serverStream) error { return nil })
	})
}

func TestIncompleteLimitsAreAnError(t *testing.T) {
	for name, change := range map[string]func(*grpclimit.Limits){
		"Limiter": func(l *grpclimit.Limits) { l.Limiter = nil },
		"Key":     func(l *grpclimit.Limits) { l.Key = nil },
		"Refused": func(l *grpclimit.Limits) { l.Refused = nil },
	} {
		l := limits(t)
		change(&l)
		unary, first := grpclimit.Unary[*unaryInfo, unaryHandler](l)
		stream, second := grpclimit.Stream[serverStream, *unaryInfo, streamHandler](l)
		if unary != nil || stream != nil {
			t.Errorf("without %s there are interceptors", name)
		}
		for _, err := range []error{first, second} {
			if err == nil || !strings.Contains(err.Error(), "no "+name) {
				t.Errorf("without %s: %v", name, err)
			}
		}
	}
}
