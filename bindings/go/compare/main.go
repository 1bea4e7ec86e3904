// Compare times tatcell and other limiters of Go, and prints a table in Markdown, then the version of Go.
//
// Every limiter gets the same limit, 10 a second and 20 at once, and the same keys, 100 000 addresses as strings:
//
//  1. one key     one key asked again and again, so most requests are refused
//  2. all keys    each key once a round in a fixed random order: the keys are in memory by the rounds that count
//  3. bytes       what the heap grew by, for a key: all keys had their first request, and all state is still needed
//
// A time is the least of five runs, and their median.
package main

import (
	"fmt"
	"math/rand"
	"runtime"
	"sort"
	"strings"
	"time"

	"tatcell.example/tatcell"
)

const (
	keys = 100_000
	runs = 5
)

type peer struct {
	name string
	by   string
	make func() func(key string) bool
	many func() func(keys []string) // instead of make: decides all keys by one call
}

// all returns what asks for all keys of a list, by a fresh limiter.
func (p *peer) all() func(keys []string) {
	if p.many != nil {
		return p.many()
	}
	hit := p.make()
	return func(keys []string) {
		for _, key := range keys {
			hit(key)
		}
	}
}

// peers is all limiters; files with a build tag add those whose module is there.
var peers = []peer{
	{name: "tatcell, `Allow`", by: "GCRA", make: func() func(string) bool { return limiter().Allow }},
	{name: "tatcell, `AllowMany`, a slice of strings", by: "GCRA", many: func() func([]string) {
		l := limiter()
		return func(keys []string) { l.AllowMany(keys, make([]bool, len(keys))) }
	}},
	{name: "tatcell, `Hit` (all numbers)", by: "GCRA", make: func() func(string) bool {
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

// timed returns the least of the times of a call, and their median, in nanoseconds.
func timed(run func()) string {
	times := make([]float64, runs)
	for i := range times {
		start := time.Now()
		run()
		times[i] = float64(time.Since(start).Nanoseconds()) / keys
	}
	sort.Float64s(times)
	return fmt.Sprintf("%.0f (%.0f)", times[0], times[runs/2])
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func clones(names []string) []string {
	own := make([]string, len(names))
	for i, name := range names {
		own[i] = strings.Clone(name)
	}
	return own
}

func main() {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
	}
	rand.New(rand.NewSource(1)).Shuffle(keys, func(i, j int) { names[i], names[j] = names[j], names[i] })
	same := make([]string, keys)
	for i := range same {
		same[i] = names[0]
	}
	fmt.Println("| Limiter | Decides by | one key, ns | each of 100 000 keys, ns | bytes a key |\n|---|---|---|---|---|")
	for _, p := range peers {
		before := heap()
		all := p.all()
		// The state has strings of its own, as a server's keys do.
		all(clones(names))
		bytes := float64(heap()-before) / keys
		one := timed(func() { all(same) })
		many := timed(func() { all(names) })
		size := fmt.Sprintf("%.0f", bytes)
		if strings.HasPrefix(p.name, "(") {
			size = "-"
		}
		fmt.Printf("| %s | %s | %s | %s | %s |\n", p.name, p.by, one, many, size)
	}
	fmt.Printf("\nGo %s\n", strings.TrimPrefix(runtime.Version(), "go"))
}
