//go:build xtime

package main

import (
	"sync"

	"golang.org/x/time/rate"
)

func init() {
	// What its users write: a map with a lock, and nothing ever leaves it.
	by := "token bucket, one object a key"
	peers = append(peers, peer{name: "x/time/rate in a map", by: by, make: func() func(string) bool {
		var lock sync.Mutex
		limiters := map[string]*rate.Limiter{}
		return func(key string) bool {
			lock.Lock()
			l, ok := limiters[key]
			if !ok {
				l = rate.NewLimiter(10, 20)
				limiters[key] = l
			}
			lock.Unlock()
			return l.Allow()
		}
	}})
}
