// Package grpclimit makes server interceptors for google.golang.org/grpc without importing it.
//
// The functions here are generic over the types of that package, so this module pins no version of it, and whoever does
// not use gRPC does not download it. The caller names the types, and the compiler checks that they fit:
//
//	limits := grpclimit.Limits{
//		Limiter: limiter,
//		Key:     func(ctx context.Context) (string, bool) { p, ok := peer.FromContext(ctx); ... },
//		Refused: func(d *tatcell.Decision) error { return status.Error(codes.ResourceExhausted, "too many requests") },
//	}
//	grpc.NewServer(
//		grpc.UnaryInterceptor(grpclimit.Unary[*grpc.UnaryServerInfo, grpc.UnaryHandler](limits)),
//		grpc.StreamInterceptor(grpclimit.Stream[grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler](limits)),
//	)
package grpclimit

import (
	"context"

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
// Handler is grpc.UnaryHandler.
func Unary[Info any, Handler ~func(context.Context, any) (any, error)](
	l Limits,
) func(context.Context, any, Info, Handler) (any, error) {
	return func(ctx context.Context, request any, _ Info, handler Handler) (any, error) {
		if err := l.check(ctx); err != nil {
			return nil, err
		}
		return handler(ctx, request)
	}
}

// Stream returns an interceptor of streams, each of which costs 1 when it begins: a grpc.StreamServerInterceptor if S
// is grpc.ServerStream, Info is *grpc.StreamServerInfo and Handler is grpc.StreamHandler.
func Stream[S interface{ Context() context.Context }, Info any, Handler ~func(any, S) error](
	l Limits,
) func(any, S, Info, Handler) error {
	return func(server any, stream S, _ Info, handler Handler) error {
		if err := l.check(stream.Context()); err != nil {
			return err
		}
		return handler(server, stream)
	}
}
