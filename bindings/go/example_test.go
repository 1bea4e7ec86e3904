package tatcell_test

import (
	"fmt"

	"tatcell.example/tatcell"
)

func Example() {
	limiter, err := tatcell.New("10/s burst 20", 100_000)
	if err != nil {
		panic(err)
	}
	for i := 0; i < 20; i++ {
		limiter.Allow("192.0.2.1")
	}
	fmt.Println(limiter.Allow("192.0.2.1"), limiter.Allow("192.0.2.2"))
	d := limiter.Hit("192.0.2.1", 5)
	fmt.Println(d.Verdict, d.Remaining, d.RetryAfter > 400_000_000)
	// Output:
	// false true
	// non-conforming 0 true
}

func ExampleCell() {
	limit, err := tatcell.NewLimit(1, 1000, 5) // 1 a second in milliseconds, 5 at once
	if err != nil {
		panic(err)
	}
	var cell tatcell.Cell
	fmt.Println(cell.Check(limit, 0, 5))
	fmt.Println(cell.Check(limit, 0, 1))
	fmt.Println(cell.Check(limit, 1000, 1).Passes())
	// Output:
	// {conforming 0}
	// {non-conforming 1000}
	// true
}

func ExampleCell_Refund() {
	limit, _ := tatcell.NewLimit(10, 1000, 10)
	var cell tatcell.Cell
	d := cell.Decide(limit, 0, 4, 0)
	after := cell.Refund(limit, 0, &d.Permit)
	fmt.Println(d.Remaining, after.Units, after.Remaining)
	// Output: 6 4 10
}

func ExampleTable() {
	few, many := tatcell.NewSpec(60, 3_600_000, 60), tatcell.NewSpec(600, 3_600_000, 600)
	table, err := tatcell.NewTable(tatcell.TableOptions{
		Fastest: many, Slowest: &few, Slots: 1024, Seed: &[16]byte{}, // Take the seed from crypto/rand.
	})
	if err != nil {
		panic(err)
	}
	free, _ := table.Limit(few)
	paid, _ := table.Limit(many)
	key := table.HashString("a customer")
	free.Check(0, key, 60)
	free.Change(paid, 0, key, tatcell.KeepUnits) // The customer gets another plan.
	fmt.Println(paid.Peek(0, key, 1).Remaining)
	// Output: 540
}

func ExampleParseSpec() {
	spec, _ := tatcell.ParseSpec("1.5MB/s burst 64kB", 1e9)
	fmt.Println(spec.Units, spec.Period, spec.Burst)
	_, err := tatcell.ParseSpec("10/fortnight", 1e9)
	fmt.Println(err)
	// Output:
	// 1500000 1000000000 64000
	// tatcell: byte 3: not a unit of time: use ns, us, ms, s, m, h, d or w
}
