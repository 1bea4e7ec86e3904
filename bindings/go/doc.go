// Package tatcell is a rate limiter in fixed memory: tatcell's cells and tables, in Go without cgo. Each answer and
// each state word is that of the library.
//
// A Limiter keeps one limit for each of many keys. A Cell is one limit, and a Table is what a Limiter is made of, for
// callers who bring their own clock, hash or several limits. Package httplimit has middleware for net/http, and package
// grpclimit has interceptors for gRPC.
//
// The burst is the most units that pass at one instant after idle; it is not "extra beyond the rate". In any window of
// length w a key gets at most rate * w + burst, however many goroutines ask. Time is a count of ticks that the caller
// passes, such as the nanoseconds of Now.
package tatcell
