//go:build grpc

// The README quotes this file from its imports on. The linter compares the two.

package main

import (
	"context"
	"net/netip"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"tatcell.example/tatcell"
	"tatcell.example/tatcell/grpclimit"
)

// client returns the key of a call: the network of the client.
func client(ctx context.Context) (string, bool) {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return "", false // no limit
	}
	address, err := netip.ParseAddrPort(p.Addr.String())
	if err != nil {
		return "", true // a Unix socket: all its clients share a key
	}
	return tatcell.AddressKey(address.Addr(), 32, 64), true
}

func refused(d *tatcell.Decision) error {
	return status.Errorf(codes.ResourceExhausted, "too many requests: retry after %.1f s", float64(d.RetryAfter)/1e9)
}

// limited makes a server whose calls and streams share one limit.
func limited(limiter *tatcell.Limiter) (*grpc.Server, error) {
	limits := grpclimit.Limits{Limiter: limiter, Key: client, Refused: refused}
	unary, err := grpclimit.Unary[*grpc.UnaryServerInfo, grpc.UnaryHandler](limits)
	if err != nil {
		return nil, err
	}
	stream, err := grpclimit.Stream[grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler](limits)
	if err != nil {
		return nil, err
	}
	return grpc.NewServer(grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream)), nil
}
