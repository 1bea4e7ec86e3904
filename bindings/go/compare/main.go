// Compare times tatcell and other limiters of Go, and prints a table in Markdown.
//
// Every limiter gets the same limit, 10 a second and 20 at once, and the same keys, 100 000 addresses as strings:
//
//  1. one key     one key asked again and again, so most requests are refused
//  2. all keys    each key once a round in a fixed random order: the keys are in memory by the rounds that count
//  3. at once     the same, by as many goroutines as there are processors
//  4. bytes       what the heap grew by, for a key: all keys had their first request, and all state is still needed
//
// A time is the least of five runs.
package main

import (
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"sync"
	"time"

	"tatcell.example/tatcell"
)

const (
	keys = 100_000
	runs = 5
)

type peer struct {
	name string
	make func() func(key string) bool
}

// peers is all limiters; files with a build tag add those whose module is there.
var peers = []peer{
	{"tatcell Limiter.Allow", func() func(string) bool { return limiter().Allow }},
	{"tatcell Limiter.Hit, full answer", func() func(string) bool {
		l := limiter()
		return func(key string) bool { d := l.Hit(key, 1); return d.Passes() }
	}},
}

func limiter() *tatcell.Limiter {
	l, err := tatcell.New("10/s burst 20", keys)
	if err != nil {
		panic(err)
	}
	return l
}

func least(n int, run func()) float64 {
	best := time.Duration(1 << 62)
	for i := 0; i < runs; i++ {
		start := time.Now()
		run()
		if took := time.Since(start); took < best {
			best = took
		}
	}
	return float64(best.Nanoseconds()) / float64(n)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func main() {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
	}
	rand.New(rand.NewSource(1)).Shuffle(keys, func(i, j int) { names[i], names[j] = names[j], names[i] })
	fmt.Println("| Limiter | one key, ns | all keys, ns | at once, ns | bytes a key |")
	fmt.Println("|---|---:|---:|---:|---:|")
	for _, p := range peers {
		before := heap()
		hit := p.make()
		// The state has strings of its own, as a server's keys do.
		for _, name := range names {
			hit(strings.Clone(name))
		}
		bytes := float64(heap()-before) / keys
		all := func() {
			for _, name := range names {
				hit(name)
			}
		}
		one := least(keys, func() {
			for i := 0; i < keys; i++ {
				hit(names[0])
			}
		})
		many := least(keys, all)
		workers := runtime.GOMAXPROCS(0)
		together := least(workers*keys, func() {
			var done sync.WaitGroup
			for i := 0; i < workers; i++ {
				done.Add(1)
				go func() { defer done.Done(); all() }()
			}
			done.Wait()
		})
		size := fmt.Sprintf("%.0f", bytes)
		if strings.HasPrefix(p.name, "(") {
			size = "-"
		}
		fmt.Printf("| %s | %.0f | %.0f | %.0f | %s |\n", p.name, one, many, together, size)
	}
	fmt.Printf("\n%s, %d processors\n", runtime.Version(), runtime.GOMAXPROCS(0))
}
