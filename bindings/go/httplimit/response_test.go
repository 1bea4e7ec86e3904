package httplimit_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tatcell.example/tatcell/httplimit"
)

func failures(status int) bool { return status >= 500 }

// passes returns whether each of some requests with one unit at hand passes.
func passes(t *testing.T, limit httplimit.Limit, serve http.HandlerFunc) (all []bool) {
	t.Helper()
	handler, err := limit.Handler(serve)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 3; i++ {
		answer := httptest.NewRecorder()
		func() {
			defer func() { recover() }()
			handler.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
		}()
		all = append(all, answer.Code != http.StatusTooManyRequests)
	}
	return all
}

// A server's failure gives the unit back, whatever form it has. Nothing else does.
func TestWhatCountsAsAFailure(t *testing.T) {
	for _, c := range []struct {
		name  string
		free  bool
		serve http.HandlerFunc
	}{
		{"a status of 500", true, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }},
		{"an error", true, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 503) }},
		{"a panic", true, func(http.ResponseWriter, *http.Request) { panic("a bug") }},
		{"a panic in a response", true, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a"); panic("a bug") }},
		{"an abort", true, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"500 after 103", true, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(500) }},
		{"500 after nothing was copied", true, func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, source{strings.NewReader("")})
			w.WriteHeader(500)
		}},
		{"nothing", false, func(http.ResponseWriter, *http.Request) {}},
		{"a status of 404", false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }},
		{"500 after 200", false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); w.WriteHeader(500) }},
		{"500 after 101", false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(101); w.WriteHeader(500) }},
		{"500 after a body", false, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a"); w.WriteHeader(500) }},
		{"500 after an empty body", false, func(w http.ResponseWriter, _ *http.Request) { w.Write(nil); w.WriteHeader(500) }},
		{"500 after a string", false, func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "a")
			w.WriteHeader(500)
		}},
		{"500 after a copy", false, func(w http.ResponseWriter, _ *http.Request) {
			io.Copy(w, source{strings.NewReader("a")})
			w.WriteHeader(500)
		}},
		{"500 after a flush", false, func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(500)
		}},
	} {
		limit := httplimit.Limit{Limiter: limiter(t, "1/h"), Key: httplimit.ByAddress(32, 64), Refund: failures}
		if got, want := passes(t, limit, c.serve), []bool{true, c.free, c.free}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// The server must see the panic, with its value.
func TestAPanicGoesOn(t *testing.T) {
	limit := httplimit.Limit{Limiter: limiter(t, "1/h"), Key: httplimit.ByAddress(32, 64), Refund: failures}
	abort := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	handler, err := limit.Handler(abort)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Error(got)
		}
	}()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
}

// A proxy answers 502 to a client that has left. That must not be a way round the limit. A deadline is the server's.
func TestAClientThatLeavesPays(t *testing.T) {
	left, leave := context.WithCancel(context.Background())
	leave()
	late, stop := context.WithTimeout(context.Background(), 0)
	defer stop()
	for _, ctx := range []context.Context{left, late} {
		limit := httplimit.Limit{Limiter: limiter(t, "1/h"), Key: httplimit.ByAddress(32, 64), Refund: failures}
		handler, err := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			w.WriteHeader(http.StatusBadGateway)
		}))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range map[context.Context][]int{left: {502, 429}, late: {502, 502}}[ctx] {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
			if answer.Code != want {
				t.Errorf("request %d with %v: %d", i, ctx.Err(), answer.Code)
			}
		}
	}
}

// copier is a writer that takes a body by ReadFrom, as that of net/http does to use sendfile.
type copier struct {
	*httptest.ResponseRecorder
	calls int
}

func (c *copier) ReadFrom(from io.Reader) (int64, error) {
	c.calls++
	return io.Copy(c.ResponseRecorder, from)
}

// source hides what else a reader can do, so that io.Copy asks the writer.
type source struct{ io.Reader }

func TestABodyIsHandedToTheWriterInside(t *testing.T) {
	limit := httplimit.Limit{Limiter: limiter(t, "10/h"), Key: httplimit.ByAddress(32, 64), Refund: failures}
	serve := func(w http.ResponseWriter) {
		handler, err := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n, err := io.Copy(w, source{strings.NewReader("a file")}); n != 6 || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	}
	can, cannot := &copier{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRecorder()
	serve(can)
	serve(cannot)
	if can.calls != 1 {
		t.Errorf("%d calls of ReadFrom", can.calls)
	}
	for _, body := range []*bytes.Buffer{can.Body, cannot.Body} {
		if body.String() != "a file" {
			t.Errorf("%q", body)
		}
	}
}

// plain is a writer that can nothing else.
type plain struct{ http.ResponseWriter }

// wrapper is a writer as programs write one since Go 1.20: http.ResponseController looks inside.
type wrapper struct{ plain }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// asked is a writer that must look inside itself first, as that of a limit around this one.
type asked struct{ plain }

func (asked) FlushError() error { return fmt.Errorf("asked: %w", http.ErrNotSupported) }

// hijackable can hand its connection over, if it had one.
type hijackable struct{ http.ResponseWriter }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, io.ErrClosedPipe }

// A handler that flushes before its body would wait for a client that waits for the body.
func TestAWriterFlushesIfTheOneInsideCan(t *testing.T) {
	for _, c := range []struct {
		name                      string
		inside                    func(*httptest.ResponseRecorder) http.ResponseWriter
		flushes, hijacks, flushed bool
	}{
		{"a flusher", func(r *httptest.ResponseRecorder) http.ResponseWriter { return r }, true, false, true},
		{"both", func(r *httptest.ResponseRecorder) http.ResponseWriter {
			return struct {
				hijackable
				http.Flusher
			}{hijackable{r}, r}
		}, true, true, true},
		{"a wrapper", func(r *httptest.ResponseRecorder) http.ResponseWriter {
			return wrapper{plain{r}}
		}, false, false, true},
		{"a hijacker", func(r *httptest.ResponseRecorder) http.ResponseWriter { return hijackable{r} }, false, true, false},
		{"one that is asked", func(r *httptest.ResponseRecorder) http.ResponseWriter {
			return asked{plain{r}}
		}, false, false, false},
		{"neither", func(r *httptest.ResponseRecorder) http.ResponseWriter { return plain{r} }, false, false, false},
	} {
		limit := httplimit.Limit{Limiter: limiter(t, "1/h"), Key: httplimit.ByAddress(32, 64), Refund: failures}
		answer := httptest.NewRecorder()
		handler, err := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, flushes := w.(http.Flusher)
			_, hijacks := w.(http.Hijacker)
			if flushes != c.flushes || hijacks != c.hijacks {
				t.Errorf("%s: flushes %v, hijacks %v", c.name, flushes, hijacks)
			}
			// It is the first thing that http.ResponseController asks for.
			err := w.(interface{ FlushError() error }).FlushError()
			if answer.Flushed != c.flushed || errors.Is(err, http.ErrNotSupported) == c.flushed {
				t.Errorf("%s: flushed %v, %v", c.name, answer.Flushed, err)
			}
			w.WriteHeader(http.StatusInternalServerError)
		}))
		if err != nil {
			t.Fatal(err)
		}
		handler.ServeHTTP(c.inside(answer), httptest.NewRequest("GET", "/", nil))
		// A flush sends 200, and no failure follows it.
		again := httptest.NewRecorder()
		handler.ServeHTTP(c.inside(again), httptest.NewRequest("GET", "/", nil))
		if refused := again.Code == http.StatusTooManyRequests; refused != c.flushed {
			t.Errorf("%s: %d after a failure", c.name, again.Code)
		}
	}
}

// Two limits are two handlers, one in the other. RateLimit and RateLimit-Policy are lists, and Retry-After is a number.
func TestTwoLimits(t *testing.T) {
	inner := httplimit.Limit{Limiter: limiter(t, "1/m"), Key: httplimit.ByAddress(32, 64), Name: "client"}
	outer := httplimit.Limit{
		Limiter: limiter(t, "9/h"), Name: "all",
		Key:    func(*http.Request) (string, bool) { return "", true },
		Refund: func(status int) bool { return status == 429 },
	}
	client, err := inner.Handler(http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := outer.Handler(client)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		status int
		limit  []string
		wait   string
	}{
		{404, []string{`"all";r=8;t=400`, `"client";r=0;t=60`}, ""},
		// The outer limit charged this one, before the inner one refused it.
		{429, []string{`"all";r=7;t=800`, `"client";r=0;t=60`}, "60"},
		{429, []string{`"all";r=7;t=800`, `"client";r=0;t=60`}, "90"},
	} {
		answer := httptest.NewRecorder()
		if i == 2 {
			answer.Header().Set("Retry-After", "90")
		}
		handler.ServeHTTP(answer, httptest.NewRequest("GET", "/", nil))
		h := answer.Header()
		if answer.Code != want.status || fmt.Sprint(h["Ratelimit"]) != fmt.Sprint(want.limit) ||
			len(h["Ratelimit-Policy"]) != 2 || fmt.Sprint(h.Values("Retry-After")) != fmt.Sprintf("[%s]", want.wait) {
			t.Errorf("request %d: %d %v", i, answer.Code, h)
		}
	}
}

func TestAnIncompleteLimitIsAnError(t *testing.T) {
	good := httplimit.Limit{Limiter: limiter(t, "1/h"), Key: httplimit.ByAddress(32, 64)}
	for name, change := range map[string]func(*httplimit.Limit) http.Handler{
		"Limiter": func(l *httplimit.Limit) http.Handler { l.Limiter = nil; return http.NotFoundHandler() },
		"Key":     func(l *httplimit.Limit) http.Handler { l.Key = nil; return http.NotFoundHandler() },
		"handler": func(*httplimit.Limit) http.Handler { return nil },
	} {
		limit := good
		next := change(&limit)
		if handler, err := limit.Handler(next); handler != nil || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without its %s: %v", name, err)
		}
	}
}
