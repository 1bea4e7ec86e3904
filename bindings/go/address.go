package tatcell

import (
	"net/netip"
)

// AddressKey returns the key of a client by its address: the first v4 bits of an IPv4 address, or the first v6 bits of
// an IPv6 one. An IPv4 address inside an IPv6 one is that IPv4 address: IPv4-mapped (RFC 4291), NAT64 by its well-known
// prefix (RFC 6052), and the router of 6to4 (RFC 3056). A zone is left out. 64 bits are a usual choice for IPv6,
// because one client has as many addresses as it likes in its /64.
//
// Fewer than 0 bits are 0 bits, and more than an address has are all of them.
//
// The key has the family, the length and the bytes of the prefix, as in the library, so no two prefixes have one key.
func AddressKey(address netip.Addr, v4, v6 int) string {
	family, bits := byte(6), v6
	if address = canonical(address); address.Is4() {
		family, bits = 4, v4
	}
	if bits < 0 {
		bits = 0
	}
	if bits > address.BitLen() {
		bits = address.BitLen()
	}
	prefix, err := address.Prefix(bits)
	if err != nil {
		return ""
	}
	key := append(make([]byte, 0, 18), family, byte(bits))
	return string(append(key, prefix.Addr().AsSlice()[:(bits+7)/8]...))
}

func canonical(address netip.Addr) netip.Addr {
	address = address.WithZone("").Unmap()
	if address.Is6() {
		b := address.As16()
		switch {
		case b[0] == 0x20 && b[1] == 2:
			return netip.AddrFrom4([4]byte{b[2], b[3], b[4], b[5]})
		case [12]byte{0, 0x64, 0xff, 0x9b} == *(*[12]byte)(b[:12]):
			return netip.AddrFrom4(*(*[4]byte)(b[12:]))
		}
	}
	return address
}
