//! The load program's one UDP socket: sends from any 127.x.y.z by IP_PKTINFO, in bursts, and takes the answers.
//!
//! The socket is bound to no address, because an answer goes to the address its request came from; it is bound to
//! the loopback device instead, so nothing from outside reaches it.

use crate::schedule::{address_of, Event};
use crate::stats::Answer;
use std::io::{Error, Result};
use std::mem::{size_of, zeroed};

/// Most datagrams in one system call.
pub const BURST: usize = 64;

/// Request and answer, as in demo/udp_gate.c.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Message {
    sent_ns: u64,
    source: u32,
    limited: u32,
    decided_us: u64,
    digest: u64,
}

/// Control data that sets the source address of one datagram.
#[repr(C)]
#[derive(Clone, Copy)]
struct SourceAddress {
    header: libc::cmsghdr,
    info: libc::in_pktinfo,
}

/// Returns the monotonic clock in nanoseconds, the one the gate's clock_gettime reads too.
pub fn clock_ns() -> u64 {
    // SAFETY: timespec is plain data, and clock_gettime writes it.
    let now = unsafe {
        let mut t: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t);
        t
    };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The socket and the buffers of its bursts.
pub struct Net {
    fd: libc::c_int,
    gate: libc::sockaddr_in,
    messages: [Message; BURST],
    controls: [SourceAddress; BURST],
}

impl Net {
    /// Opens a socket that sends to 127.0.0.1 at `port`.
    pub fn open(port: u16) -> Result<Self> {
        // SAFETY: plain socket calls on a descriptor of our own; all-zero bytes are valid for these C structs.
        unsafe {
            let fd = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            if fd < 0 {
                return Err(Error::last_os_error());
            }
            let size: libc::c_int = 4 << 20;
            for option in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
                let value = (&size as *const libc::c_int).cast();
                libc::setsockopt(fd, libc::SOL_SOCKET, option, value, size_of::<libc::c_int>() as u32);
            }
            libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, c"lo".as_ptr().cast(), 3);
            let mut gate: libc::sockaddr_in = zeroed();
            gate.sin_family = libc::AF_INET as libc::sa_family_t;
            gate.sin_port = port.to_be();
            gate.sin_addr.s_addr = 0x7f00_0001u32.to_be();
            let mut control: SourceAddress = zeroed();
            control.header.cmsg_len = libc::CMSG_LEN(size_of::<libc::in_pktinfo>() as u32) as _;
            control.header.cmsg_level = libc::IPPROTO_IP;
            control.header.cmsg_type = libc::IP_PKTINFO;
            Ok(Net { fd, gate, messages: [Message::default(); BURST], controls: [control; BURST] })
        }
    }

    /// Sends one request for each event, at most `BURST`, and returns how many the system took.
    pub fn send(&mut self, events: &[Event], now_ns: u64) -> usize {
        let count = events.len().min(BURST);
        // SAFETY: every pointer below is to a field of self or a local that outlives the call.
        unsafe {
            let mut iov: [libc::iovec; BURST] = zeroed();
            let mut out: [libc::mmsghdr; BURST] = zeroed();
            for (i, event) in events[..count].iter().enumerate() {
                self.messages[i] = Message { sent_ns: now_ns, source: event.source, ..Message::default() };
                self.controls[i].info.ipi_spec_dst.s_addr = address_of(event.source).to_be();
                iov[i].iov_base = (&raw mut self.messages[i]).cast();
                iov[i].iov_len = size_of::<Message>();
                let header = &mut out[i].msg_hdr;
                header.msg_name = (&raw mut self.gate).cast();
                header.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
                header.msg_iov = &raw mut iov[i];
                header.msg_iovlen = 1;
                header.msg_control = (&raw mut self.controls[i]).cast();
                header.msg_controllen = libc::CMSG_SPACE(size_of::<libc::in_pktinfo>() as u32) as _;
            }
            libc::sendmmsg(self.fd, out.as_mut_ptr(), count as u32, 0).max(0) as usize
        }
    }

    /// Takes the answers that have arrived, at most `BURST`, and returns how many there were.
    pub fn receive(&mut self, mut on_answer: impl FnMut(Answer)) -> usize {
        let mut messages = [Message::default(); BURST];
        // SAFETY: every pointer below is to a local that outlives the call.
        let (taken, lengths) = unsafe {
            let mut iov: [libc::iovec; BURST] = zeroed();
            let mut into: [libc::mmsghdr; BURST] = zeroed();
            for i in 0..BURST {
                iov[i].iov_base = (&raw mut messages[i]).cast();
                iov[i].iov_len = size_of::<Message>();
                into[i].msg_hdr.msg_iov = &raw mut iov[i];
                into[i].msg_hdr.msg_iovlen = 1;
            }
            let flags = libc::MSG_DONTWAIT as _;
            let n = libc::recvmmsg(self.fd, into.as_mut_ptr(), BURST as u32, flags, std::ptr::null_mut());
            (n.max(0) as usize, into.map(|m| m.msg_len as usize))
        };
        for (message, length) in messages.iter().zip(lengths).take(taken) {
            if length == size_of::<Message>() {
                let limited = message.limited != 0;
                on_answer(Answer { source: message.source, sent_ns: message.sent_ns, limited });
            }
        }
        taken
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        // SAFETY: fd is ours and is not used again.
        unsafe { libc::close(self.fd) };
    }
}
