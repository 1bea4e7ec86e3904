package tatcell

import (
	"encoding/binary"
	"math/bits"
)

// seed is the secret of a table, as two little-endian words.
type seed struct{ k0, k1 uint64 }

func newSeed(bytes [16]byte) seed {
	return seed{binary.LittleEndian.Uint64(bytes[:8]), binary.LittleEndian.Uint64(bytes[8:])}
}

// hash returns SipHash-1-3 of a key (Aumasson and Bernstein, 2012).
func hash[K ~string | ~[]byte](s seed, key K) uint64 {
	v0, v1 := s.k0^0x736f6d6570736575, s.k1^0x646f72616e646f6d
	v2, v3 := s.k0^0x6c7967656e657261, s.k1^0x7465646279746573
	last := uint64(len(key)) << 56
	i := 0
	for ; i+8 <= len(key); i += 8 {
		m := uint64(key[i]) | uint64(key[i+1])<<8 | uint64(key[i+2])<<16 | uint64(key[i+3])<<24 |
			uint64(key[i+4])<<32 | uint64(key[i+5])<<40 | uint64(key[i+6])<<48 | uint64(key[i+7])<<56
		v3 ^= m
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
	}
	for shift := 0; i < len(key); i++ {
		last |= uint64(key[i]) << shift
		shift += 8
	}
	v3 ^= last
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= last
	v2 ^= 0xff
	for round := 0; round < 3; round++ {
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	}
	return v0 ^ v1 ^ v2 ^ v3
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
