//go:build throttled

package main

import (
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
)

func init() {
	peers = append(peers, peer{name: "throttled v2, memstore", by: "GCRA", make: func() func(string) bool {
		store, err := memstore.New(2 * keys)
		if err != nil {
			panic(err)
		}
		// Its burst is beyond the first request.
		quota := throttled.RateQuota{MaxRate: throttled.PerSec(10), MaxBurst: 19}
		l, err := throttled.NewGCRARateLimiter(store, quota)
		if err != nil {
			panic(err)
		}
		return func(key string) bool {
			limited, _, err := l.RateLimit(key, 1)
			return err == nil && !limited
		}
	}})
}
