//go:build cgo

package main

// static int nothing(const char *key) { return key != 0; }
import "C"

import "unsafe"

func init() {
	// What each decision would cost more, if the package called the library of C.
	peers = append(peers, peer{name: "(an empty call by cgo)", by: "-", make: func() func(string) bool {
		key := []byte("10.0.0.1")
		return func(string) bool { return C.nothing((*C.char)(unsafe.Pointer(&key[0]))) != 0 }
	}})
}
