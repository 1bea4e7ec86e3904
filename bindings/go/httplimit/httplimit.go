// Package httplimit is middleware for net/http: it answers 429 to requests that are over the limit, and adds RateLimit
// fields to all responses.
package httplimit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"tatcell.example/tatcell"
)

// Key returns the key of a request, and false if the request has no limit.
type Key func(*http.Request) (string, bool)

// Limit is middleware. Limiter and Key are necessary.
type Limit struct {
	Limiter *tatcell.Limiter
	Key     Key
	// Name is the name of the limit in the fields; empty is "default".
	Name string
	// Cost returns the units of a request; nil is 1 for all.
	Cost func(*http.Request) uint64
	// Refund returns whether a response with this status gives its units back; nil is never. A handler that panics has
	// status 500, whatever it sent before. A client that leaves before its handler is done gets nothing back:
	// otherwise a client that cancels each request would have no limit.
	Refund func(status int) bool
	// Refuse answers a refused request. The fields are set already; nil answers 429 with a line of text.
	Refuse func(http.ResponseWriter, *http.Request, *tatcell.Decision)
}

// Handler returns the handler with the limit in front of it. It fails if the limiter, the key or the handler is nil, or
// if Name is no string of structured fields. For two limits, put one handler in the other, and give each limit a name.
func (l Limit) Handler(next http.Handler) (http.Handler, error) {
	switch {
	case l.Limiter == nil:
		return nil, errors.New("httplimit: the Limit has no Limiter: make one by tatcell.New")
	case l.Key == nil:
		return nil, errors.New("httplimit: the Limit has no Key: use ByAddress, or a function of your own")
	case next == nil:
		return nil, errors.New("httplimit: the handler is nil: give the one to limit")
	}
	if l.Name == "" {
		l.Name = "default"
	}
	if l.Refuse == nil {
		l.Refuse = refuse
	}
	fields, err := l.Limiter.Fields(l.Name)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, limited := l.Key(r)
		if !limited {
			next.ServeHTTP(w, r)
			return
		}
		cost := uint64(1)
		if l.Cost != nil {
			cost = l.Cost(r)
		}
		d := l.Limiter.Hit(key, cost)
		write(w.Header(), fields.Of(&d))
		switch {
		case !d.Passes():
			l.Refuse(w, r, &d)
		case l.Refund == nil:
			next.ServeHTTP(w, r)
		default:
			l.serve(next, w, r, key, &d)
		}
	}), nil
}

// serve gives back what the request was charged if it fails.
func (l *Limit) serve(next http.Handler, w http.ResponseWriter, r *http.Request, key string, d *tatcell.Decision) {
	seen := &watcher{ResponseWriter: w}
	returned := false
	// There is no recover here, so a panic goes on as it was.
	defer func() {
		status := seen.status
		switch {
		case !returned:
			status = http.StatusInternalServerError
		case status == 0:
			status = http.StatusOK
		}
		if l.Refund(status) && !errors.Is(r.Context().Err(), context.Canceled) {
			l.Limiter.Refund(key, d)
		}
	}()
	next.ServeHTTP(seen, r)
	returned = true
}

// write adds the fields of a limit to those of the limits around it. Of two times to wait, the longer one counts.
func write(h http.Header, f tatcell.Fields) {
	h.Add("RateLimit-Policy", f.Policy)
	if f.Limit != "" {
		h.Add("RateLimit", f.Limit)
	}
	if f.RetryAfter != "" {
		before, err := strconv.ParseUint(h.Get("Retry-After"), 10, 64)
		if wait, _ := strconv.ParseUint(f.RetryAfter, 10, 64); err != nil || before < wait {
			h.Set("Retry-After", f.RetryAfter)
		}
	}
}

func refuse(w http.ResponseWriter, _ *http.Request, d *tatcell.Decision) {
	text := "This request is larger than its limit allows at all."
	if d.Verdict != tatcell.Never {
		text = fmt.Sprintf("Too many requests: retry after %.1f s.", float64(d.RetryAfter)/1e9)
	}
	http.Error(w, text, http.StatusTooManyRequests)
}

// watcher remembers the status of a response: the first final one, which is 200 if a body comes before it.
// http.ResponseController reaches the writer inside by Unwrap; io.Copy needs ReadFrom.
type watcher struct {
	http.ResponseWriter
	status int // 0 while there is none
}

func (w *watcher) saw(status int) {
	final := status >= 200 || status == http.StatusSwitchingProtocols
	if w.status == 0 && final {
		w.status = status
	}
}

func (w *watcher) WriteHeader(status int) {
	w.saw(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *watcher) Write(body []byte) (int, error) {
	w.saw(http.StatusOK)
	return w.ResponseWriter.Write(body)
}

// ReadFrom hands a body over, so that net/http can send a file by sendfile.
func (w *watcher) ReadFrom(body io.Reader) (n int64, err error) {
	if to, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		n, err = to.ReadFrom(body)
	} else {
		n, err = io.Copy(struct{ io.Writer }{w.ResponseWriter}, body)
	}
	// An empty body leaves the status open.
	if n > 0 {
		w.saw(http.StatusOK)
	}
	return n, err
}

func (w *watcher) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what is buffered, if the writer inside can.
func (w *watcher) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		w.saw(http.StatusOK)
		f.Flush()
	}
}

// Hijack hands the connection over, if the writer inside can.
func (w *watcher) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if h, ok := w.ResponseWriter.(http.Hijacker); ok {
		return h.Hijack()
	}
	return nil, nil, http.ErrNotSupported
}

// ByAddress keys by the address of the peer: its first v4 or v6 bits (see tatcell.AddressKey; 32 and 64 are usual).
// Peers without an address, such as those of a Unix socket, share one key.
func ByAddress(v4, v6 int) Key {
	return func(r *http.Request) (string, bool) { return addressKey(r.RemoteAddr, v4, v6), true }
}

// ByForwarded keys by the address in X-Forwarded-For that the first of so many trusted proxies saw. Each proxy appends
// the address of its client, so that is as many places from the right as there are proxies; what is left of it is what
// the client wants us to believe. A request with fewer addresses did not come through all the proxies: it is keyed by
// the address of the peer.
func ByForwarded(proxies, v4, v6 int) Key {
	return func(r *http.Request) (string, bool) {
		address := r.RemoteAddr
		if proxies > 0 {
			var hops []string
			for _, hop := range strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",") {
				if hop = strings.TrimSpace(hop); hop != "" {
					hops = append(hops, hop)
				}
			}
			if len(hops) >= proxies {
				address = hops[len(hops)-proxies]
			}
		}
		return addressKey(address, v4, v6), true
	}
}

// ByHeader keys by the value of a header, such as an API key. Requests without it have the key "", so they share one
// limit. The client chooses the value: use a header that something in front of this handler has checked.
func ByHeader(name string) Key {
	return func(r *http.Request) (string, bool) { return r.Header.Get(name), true }
}

func addressKey(text string, v4, v6 int) string {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		return text
	}
	return tatcell.AddressKey(address, v4, v6)
}
