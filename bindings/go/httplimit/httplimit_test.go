package httplimit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"tatcell.example/tatcell"
	"tatcell.example/tatcell/httplimit"
)

func Example() {
	limiter, err := tatcell.New("2/s burst 2", 100_000)
	if err != nil {
		panic(err)
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	limit := httplimit.Limit{Limiter: limiter, Key: httplimit.ByAddress(32, 64)}
	handler, err := limit.Handler(hello)
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	for i := 0; i < 3; i++ {
		answer, err := http.Get(server.URL)
		if err != nil {
			panic(err)
		}
		answer.Body.Close()
		fmt.Printf("%d %s, %q\n", answer.StatusCode, answer.Header.Get("RateLimit"), answer.Header.Get("Retry-After"))
	}
	// Output:
	// 200 "default";r=1;t=1, ""
	// 200 "default";r=0;t=1, ""
	// 429 "default";r=0;t=1, "1"
}

func ask(t *testing.T, limit httplimit.Limit, status int, change func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	handler, err := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		w.(http.Flusher).Flush()
	}))
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest("GET", "/", nil)
	if change != nil {
		change(request)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

func limiter(t *testing.T, text string) *tatcell.Limiter {
	t.Helper()
	l, err := tatcell.New(text, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestKeys(t *testing.T) {
	from := func(peer string, forwarded ...string) *http.Request {
		return &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded, "Api-Key": {"a"}}}
	}
	v4 := string([]byte{4, 24, 192, 0, 2})
	v6 := string([]byte{6, 56, 0x20, 1, 0xd, 0xb8, 0, 0, 0})
	for _, c := range []struct {
		key     httplimit.Key
		request *http.Request
		want    string
	}{
		{httplimit.ByAddress(24, 56), from("192.0.2.7:4711", "203.0.113.1"), v4},
		{httplimit.ByAddress(24, 56), from("[::ffff:192.0.2.7]:4711"), v4},
		{httplimit.ByAddress(24, 56), from("[2001:db8::7%eth0]:4711"), v6},
		{httplimit.ByAddress(24, 56), from("fe80::7%eth0"), string([]byte{6, 56, 0xfe, 0x80, 0, 0, 0, 0, 0})},
		{httplimit.ByAddress(24, 56), from("@"), "@"},
		{httplimit.ByAddress(24, 56), from(""), ""},
		{httplimit.ByForwarded(1, 24, 56), from("", "192.0.2.7"), v4},
		{httplimit.ByForwarded(1, 24, 56), from("", " , "), ""},
		{httplimit.ByForwarded(1, 24, 56), from("10.0.0.1:1", "203.0.113.1", "", "192.0.2.7:4711"), v4},
		{httplimit.ByForwarded(1, 24, 56), from("10.0.0.1:1", "203.0.113.1, unknown"), "unknown"},
		{httplimit.ByForwarded(0, 24, 56), from("192.0.2.7:1", "203.0.113.1"), v4},
		{httplimit.ByForwarded(1, 24, 56), from("10.0.0.1:1", "203.0.113.1, 192.0.2.7"), v4},
		{httplimit.ByForwarded(2, 24, 56), from("10.0.0.1:1", "203.0.113.1, 192.0.2.7 ,", "10.0.0.2"), v4},
		{httplimit.ByForwarded(2, 24, 56), from("10.0.0.1:1", "[2001:db8::7]:99", "10.0.0.2"), v6},
		{httplimit.ByForwarded(3, 24, 56), from("192.0.2.1:1", "203.0.113.1, 10.0.0.3"), v4},
		{httplimit.ByHeader("API-Key"), from("192.0.2.1:1"), "a"},
	} {
		if got, limited := c.key(c.request); got != c.want || !limited {
			t.Errorf("%v: key %q, not %q", c.request.RemoteAddr, got, c.want)
		}
	}
}

func TestARefusalHasFieldsAndTheOthersToo(t *testing.T) {
	limit := httplimit.Limit{Limiter: limiter(t, "1/h burst 2"), Key: httplimit.ByAddress(32, 64), Name: "hourly"}
	for i, want := range []struct{ status, left, wait string }{
		{"201", `"hourly";r=1;t=3600`, ""}, {"201", `"hourly";r=0;t=7200`, ""}, {"429", `"hourly";r=0;t=3600`, "3600"},
	} {
		answer := ask(t, limit, 201, nil)
		if fmt.Sprint(answer.Code) != want.status || answer.Header().Get("RateLimit") != want.left ||
			answer.Header().Get("Retry-After") != want.wait || answer.Header().Get("RateLimit-Policy") != `"hourly";q=2;w=7200` {
			t.Errorf("request %d: %d %v", i, answer.Code, answer.Header())
		}
	}
	limit.Cost = func(*http.Request) uint64 { return 3 }
	if answer := ask(t, limit, 201, nil); answer.Code != 429 || answer.Header().Get("Retry-After") != "" {
		t.Errorf("a cost above the burst: %d %v", answer.Code, answer.Header())
	}
	limit.Name = "ü"
	if _, err := limit.Handler(http.NotFoundHandler()); err == nil {
		t.Error("a name outside of ASCII was taken")
	}
}

func TestAFailureGivesItsUnitsBack(t *testing.T) {
	limit := httplimit.Limit{Limiter: limiter(t, "1/h"), Key: httplimit.ByAddress(32, 64)}
	limit.Refund = func(status int) bool { return status >= 500 }
	for i, status := range []int{503, 500, 200} {
		if answer := ask(t, limit, status, nil); answer.Code != status {
			t.Errorf("request %d: %d", i, answer.Code)
		}
	}
	if answer := ask(t, limit, 200, nil); answer.Code != 429 {
		t.Errorf("after a success: %d", answer.Code)
	}
}

func TestAConnectionIsHandedOverThroughALimit(t *testing.T) {
	limit := httplimit.Limit{Limiter: limiter(t, "1/h"), Key: httplimit.ByAddress(32, 64)}
	limit.Refund = func(status int) bool { return status >= 500 }
	handler, err := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		fmt.Fprint(connection, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
	}))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	answer, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		t.Error(answer.Status)
	}
}

func TestARequestWithoutAKeyHasNoLimit(t *testing.T) {
	limit := httplimit.Limit{Limiter: limiter(t, "1/h"), Key: func(*http.Request) (string, bool) { return "", false }}
	for i := 0; i < 3; i++ {
		if answer := ask(t, limit, 204, nil); answer.Code != 204 || len(answer.Header()) != 0 {
			t.Errorf("%d %v", answer.Code, answer.Header())
		}
	}
}
