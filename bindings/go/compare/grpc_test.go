//go:build grpc

package main

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"tatcell.example/tatcell"
)

type server struct {
	health.UnimplementedHealthServer
}

func (server) Check(context.Context, *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	return &health.HealthCheckResponse{}, nil
}

func (server) Watch(_ *health.HealthCheckRequest, stream health.Health_WatchServer) error {
	return stream.Send(&health.HealthCheckResponse{})
}

// The server is that of the README, and limits calls over loopback.
func TestInterceptorsOfGRPC(t *testing.T) {
	limiter, err := tatcell.New("1/h burst 2", 100)
	if err != nil {
		t.Fatal(err)
	}
	s, err := limited(limiter)
	if err != nil {
		t.Fatal(err)
	}
	health.RegisterHealthServer(s, server{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(listener)
	defer s.Stop()
	connection, err := grpc.Dial(listener.Addr().String(), grpc.WithInsecure(), grpc.WithBlock())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := health.NewHealthClient(connection)
	watch := func() error {
		stream, err := client.Watch(context.Background(), &health.HealthCheckRequest{})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	check := func() error {
		_, err := client.Check(context.Background(), &health.HealthCheckRequest{})
		return err
	}
	for i, want := range []codes.Code{codes.OK, codes.OK, codes.ResourceExhausted, codes.ResourceExhausted} {
		if err := []func() error{check, watch}[i%2](); status.Code(err) != want {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
