// Package grpclimit makes server interceptors for google.golang.org/grpc without importing it.
//
// The functions here are generic over the types of that package, so this module pins no version of it, and whoever does
// not use gRPC does not download it. The caller names the types, and the compiler checks that they fit:
//
//	unary, err := grpclimit.Unary[*grpc.UnaryServerInfo, grpc.UnaryHandler](limits)
//	stream, err := grpclimit.Stream[grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler](limits)
//	server := grpc.NewServer(grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream))
//
// The README of the module has a whole server.
package grpclimit

import (
	"context"
	"errors"

	"tatcell.example/tatcell"
)

// Limits says how calls are limited. All fields are necessary.
type Limits struct {
	Limiter *tatcell.Limiter
	// Key returns the key of a call, and false if the call has no limit.
	Key func(context.Context) (string, bool)
	// Refused returns the error of a refused call, such as one with codes.ResourceExhausted.
	Refused func(*tatcell.Decision) error
}

func (l *Limits) complete() error {
	switch {
	case l.Limiter == nil:
		return errors.New("grpclimit: the Limits have no Limiter: make one by tatcell.New")
	case l.Key == nil:
		return errors.New("grpclimit: the Limits have no Key: give a function that returns the key of a call")
	case l.Refused == nil:
		return errors.New("grpclimit: the Limits have no Refused: give a function that returns an error")
	}
	return nil
}

func (l *Limits) check(ctx context.Context) error {
	key, limited := l.Key(ctx)
	if !limited {
		return nil
	}
	if d := l.Limiter.Hit(key, 1); !d.Passes() {
		return l.Refused(&d)
	}
	return nil
}

// Unary returns an interceptor of unary calls: a grpc.UnaryServerInterceptor if Info is *grpc.UnaryServerInfo and
// Handler is grpc.UnaryHandler. It fails if a field of the limits is nil.
func Unary[Info any, Handler ~func(context.Context, any) (any, error)](
	l Limits,
) (func(context.Context, any, Info, Handler) (any, error), error) {
	if err := l.complete(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, request any, _ Info, handler Handler) (any, error) {
		if err := l.check(ctx); err != nil {
			return nil, err
		}
		return handler(ctx, request)
	}, nil
}

// Stream returns an interceptor of streams, each of which costs 1 when it begins: a grpc.StreamServerInterceptor if S
// is grpc.ServerStream, Info is *grpc.StreamServerInfo and Handler is grpc.StreamHandler. It fails if a field of the
// limits is nil.
func Stream[S interface{ Context() context.Context }, Info any, Handler ~func(any, S) error](
	l Limits,
) (func(any, S, Info, Handler) error, error) {
	if err := l.complete(); err != nil {
		return nil, err
	}
	return func(server any, stream S, _ Info, handler Handler) error {
		if err := l.check(stream.Context()); err != nil {
			return err
		}
		return handler(server, stream)
	}, nil
}
