// Package httplimit is middleware for net/http: it answers 429 to requests that are over the limit, and adds RateLimit
// fields to all responses. Clients are told nothing of a limit in shadow mode.
package httplimit

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	//
	// The handler then has a writer of its own. It is an io.ReaderFrom, and an http.Flusher and an http.Hijacker if the
	// writer inside is one. It is no http.Pusher, http.CloseNotifier or io.StringWriter. http.ResponseController finds
	// the server's writer inside.
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
	next.ServeHTTP(seen.writer(), r)
	returned = true
}

// write adds the fields of a limit to those of the limits around it. Of two times to wait, the longer one counts.
func write(h http.Header, f tatcell.Fields) {
	if f.Policy != "" {
		h.Add("RateLimit-Policy", f.Policy)
	}
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

// FlushError sends what is buffered. http.ResponseController asks for it first, so it looks as far inside as that does.
func (w *watcher) FlushError() error {
	for inside := w.ResponseWriter; ; {
		switch f := inside.(type) {
		case interface{ FlushError() error }:
			err := f.FlushError()
			if !errors.Is(err, http.ErrNotSupported) {
				w.saw(http.StatusOK)
			}
			return err
		case http.Flusher:
			w.saw(http.StatusOK)
			f.Flush()
			return nil
		case interface{ Unwrap() http.ResponseWriter }:
			inside = f.Unwrap()
		default:
			return fmt.Errorf("httplimit: flush: %w", http.ErrNotSupported)
		}
	}
}

type flusher struct{ *watcher }

func (f flusher) Flush() { _ = f.FlushError() }

// writer returns what the handler writes to. Handlers ask the type what it can do. So it flushes or hijacks only if the
// writer inside does: that of http.TimeoutHandler cannot flush, that of HTTP/2 cannot hijack.
func (w *watcher) writer() http.ResponseWriter {
	_, flushes := w.ResponseWriter.(http.Flusher)
	h, hijacks := w.ResponseWriter.(http.Hijacker)
	switch {
	case flushes && hijacks:
		return struct {
			flusher
			http.Hijacker
		}{flusher{w}, h}
	case flushes:
		return flusher{w}
	case hijacks:
		return struct {
			*watcher
			http.Hijacker
		}{w, h}
	}
	return w
}

// ByAddress keys by the address of the peer: its first v4 or v6 bits (see tatcell.AddressKey; 32 and 64 are usual).
// Peers without an address, such as those of a Unix socket, share one key. It panics if v4 is not 0 to 32, or v6 not 0
// to 128.
func ByAddress(v4, v6 int) Key { return ByForwarded(0, v4, v6) }

// ByForwarded keys by the address in X-Forwarded-For that the outermost trusted proxy saw. Each proxy appends the
// address of its client. So with n proxies it is the n-th entry from the right, and a client can forge what stands left
// of it. Every entry counts, also an empty one: the next one to the left may be the client's.
//
// If there is no such entry, or it is not an address, the client is the peer of the connection, which nobody can make
// up. Requests whose peer has no address share one key. It panics if proxies is below 0, or for the bits as
// ByAddress does.
func ByForwarded(proxies, v4, v6 int) Key {
	switch {
	case proxies < 0:
		panic(fmt.Sprintf("httplimit: %d proxies: give 0 or more", proxies))
	case v4 < 0 || v4 > 32:
		panic(fmt.Sprintf("httplimit: %d bits of an IPv4 address: give 0 to 32", v4))
	case v6 < 0 || v6 > 128:
		panic(fmt.Sprintf("httplimit: %d bits of an IPv6 address: give 0 to 128", v6))
	}
	return func(r *http.Request) (string, bool) {
		if proxies > 0 {
			entries := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
			if len(entries) >= proxies {
				if address, ok := addressOf(entries[len(entries)-proxies]); ok {
					return tatcell.AddressKey(address, v4, v6), true
				}
			}
		}
		if address, ok := addressOf(r.RemoteAddr); ok {
			return tatcell.AddressKey(address, v4, v6), true
		}
		return "", true
	}
}

// ByHeader keys by the value of a header, such as an API key. Requests without it have the key "", so they share one
// limit. The client chooses the value: use a header that something in front of this handler has checked.
func ByHeader(name string) Key {
	return func(r *http.Request) (string, bool) { return r.Header.Get(name), true }
}

// addressOf reads an address, perhaps in brackets, with a zone or with a port.
func addressOf(text string) (address netip.Addr, ok bool) {
	host, port := strings.Trim(text, " \t"), ""
	if strings.HasPrefix(host, "[") {
		if host, port, ok = strings.Cut(host[1:], "]"); !ok {
			return address, false
		}
	} else if strings.Count(host, ":") == 1 {
		// With more than one colon it is an IPv6 address.
		colon := strings.IndexByte(host, ':')
		host, port = host[:colon], host[colon:]
	}
	if port != "" && (port[0] != ':' || port == ":" || strings.Trim(port[1:], "0123456789") != "") {
		return address, false
	}
	host, _, _ = strings.Cut(host, "%")
	address, err := netip.ParseAddr(host)
	return address, err == nil
}
