package httplimit_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
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
		{httplimit.ByAddress(24, 56), from("@"), ""},
		{httplimit.ByAddress(24, 56), from("a name"), ""},
		{httplimit.ByAddress(24, 56), from(""), ""},
		{httplimit.ByForwarded(1, 24, 56), from("", "192.0.2.7"), v4},
		{httplimit.ByForwarded(1, 24, 56), from("", " , "), ""},
		{httplimit.ByForwarded(1, 24, 56), from("10.0.0.1:1", "203.0.113.1", "", "192.0.2.7:4711"), v4},
		{httplimit.ByForwarded(0, 24, 56), from("192.0.2.7:1", "203.0.113.1"), v4},
		{httplimit.ByForwarded(1, 24, 56), from("10.0.0.1:1", "203.0.113.1, 192.0.2.7"), v4},
		{httplimit.ByForwarded(2, 24, 56), from("10.0.0.1:1", "203.0.113.1, 192.0.2.7 ", "10.0.0.2"), v4},
		{httplimit.ByForwarded(2, 24, 56), from("10.0.0.1:1", "[2001:db8::7]:99", "10.0.0.2"), v6},
		{httplimit.ByForwarded(3, 24, 56), from("192.0.2.1:1", "203.0.113.1, 10.0.0.3"), v4},
		{httplimit.ByHeader("API-Key"), from("192.0.2.1:1"), "a"},
	} {
		if got, limited := c.key(c.request); got != c.want || !limited {
			t.Errorf("%v: key %q, not %q", c.request.RemoteAddr, got, c.want)
		}
	}
}

// The same cases as in the packages for Rust, Python and Node.
func TestTheClientIsAnEntryThatIsAnAddressOrThePeer(t *testing.T) {
	for _, c := range []struct {
		proxies int
		fields  []string
		want    string
	}{
		{0, []string{"198.51.100.7"}, "192.0.2.1"},
		{1, []string{"spoofed, 198.51.100.7"}, "198.51.100.7"},
		{2, []string{"spoofed, 198.51.100.7, 10.0.0.1"}, "198.51.100.7"},
		{2, []string{"spoofed, 198.51.100.7", "10.0.0.1"}, "198.51.100.7"},
		{2, []string{"198.51.100.7"}, "192.0.2.1"},
		{1, nil, "192.0.2.1"},
		{1, []string{""}, "192.0.2.1"},
		{1, []string{"198.51.100.7,"}, "192.0.2.1"},
		{2, []string{"198.51.100.7,"}, "198.51.100.7"},
		{1, []string{" , "}, "192.0.2.1"},
		{1, []string{"198.51.100.7, unknown"}, "192.0.2.1"},
		{1, []string{"198.51.100.7, unix:"}, "192.0.2.1"},
		{2, []string{"198.51.100.7, , 10.0.0.1"}, "192.0.2.1"},
		{2, []string{"198.51.100.7", "", "10.0.0.1"}, "192.0.2.1"},
		{1, []string{"\t198.51.100.7\t"}, "198.51.100.7"},
		{1, []string{"198.51.100.7:4711"}, "198.51.100.7"},
		{1, []string{"[198.51.100.7]:4711"}, "198.51.100.7"},
		{1, []string{"2001:db8::7"}, "2001:db8::7"},
		{1, []string{"[2001:db8::7]:4711"}, "2001:db8::7"},
		{1, []string{"[2001:db8::7]"}, "2001:db8::7"},
		{1, []string{"::ffff:198.51.100.7"}, "198.51.100.7"},
		{1, []string{"fe80::1%eth0"}, "fe80::1"},
		{1, []string{"[fe80::1%eth0]:80"}, "fe80::1"},
		{1, []string{"198.51.100.7:x"}, "192.0.2.1"},
		{1, []string{"198.51.100.7:"}, "192.0.2.1"},
		{1, []string{"192.0.2"}, "192.0.2.1"},
		{1, []string{"[192.0.2.9"}, "192.0.2.1"},
		{1, []string{"192.0.2.9]"}, "192.0.2.1"},
		{1, []string{"[2001:db8::7]x"}, "192.0.2.1"},
	} {
		want := tatcell.AddressKey(netip.MustParseAddr(c.want), 32, 64)
		request := &http.Request{RemoteAddr: "192.0.2.1:40000", Header: http.Header{"X-Forwarded-For": c.fields}}
		if got, limited := httplimit.ByForwarded(c.proxies, 32, 64)(request); got != want || !limited {
			t.Errorf("%d, %q: %q, not %s", c.proxies, c.fields, got, c.want)
		}
	}
	for _, field := range []string{"unknown", "", "198.51.100.7, _hidden"} {
		request := &http.Request{RemoteAddr: "@", Header: http.Header{"X-Forwarded-For": {field}}}
		if got, limited := httplimit.ByForwarded(1, 32, 64)(request); got != "" || !limited {
			t.Errorf("without any address, %q: %q", field, got)
		}
	}
}

func TestWrongNumbersPanicWhenTheKeyIsMade(t *testing.T) {
	for name, make := range map[string]func(){
		"-1 proxies":   func() { httplimit.ByForwarded(-1, 32, 64) },
		"40 bits":      func() { httplimit.ByForwarded(1, 40, 64) },
		"200 bits":     func() { httplimit.ByForwarded(1, 32, 200) },
		"-1 bits":      func() { httplimit.ByAddress(-1, 64) },
		"129 bits":     func() { httplimit.ByAddress(32, 129) },
		"-1 bits of 6": func() { httplimit.ByAddress(32, -1) },
	} {
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "httplimit: ") {
					t.Errorf("%s: %s", name, text)
				}
			}()
			make()
		}()
	}
	httplimit.ByForwarded(0, 0, 0)
	httplimit.ByForwarded(1, 32, 128)
}

func TestClientsAreToldNothingOfAShadowLimit(t *testing.T) {
	spec := tatcell.NewSpec(2, 3600e9, 2)
	spec.Shadow = true
	tried, err := tatcell.NewLimiter(spec, 1000, tatcell.Admit)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 4; i++ {
		answer := ask(t, httplimit.Limit{Limiter: tried, Key: httplimit.ByAddress(32, 64)}, 204, nil)
		if answer.Code != 204 || len(answer.Header()) != 0 {
			t.Errorf("request %d: %d %v", i, answer.Code, answer.Header())
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

// A writer of HTTP/2 has no connection to hand over, and says so.
func TestAWriterIsNoHijackerUnlessTheOneInsideIs(t *testing.T) {
	limit := httplimit.Limit{Limiter: limiter(t, "9/h"), Key: httplimit.ByAddress(32, 64)}
	limit.Refund = func(status int) bool { return status >= 500 }
	handler, err := limit.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, hijacks := w.(http.Hijacker)
		fmt.Fprint(w, r.ProtoMajor, hijacks)
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, two := range []bool{false, true} {
		server := httptest.NewUnstartedServer(handler)
		server.EnableHTTP2 = two
		server.StartTLS()
		defer server.Close()
		answer, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if want := map[bool]string{false: "1 true", true: "2 false"}[two]; string(body) != want {
			t.Errorf("%q, not %q", body, want)
		}
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
