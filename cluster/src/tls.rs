//! TLS: the certificates that a node trusts, its own, and a session over a socket.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// Holds certificates for a store whose URL begins with `rediss`. Needs the feature `tls`.
///
/// Without any, the node trusts the authorities of the system, or those in the file that `SSL_CERT_FILE` names.
#[derive(Clone, Debug)]
pub struct Tls {
    authorities: Option<Vec<u8>>,
    client: Option<(Vec<u8>, Vec<u8>)>,
}

impl Default for Tls {
    fn default() -> Self {
        Tls::new()
    }
}

fn wrong(what: &str, why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{what}: {why}"))
}

impl Tls {
    /// Starts with the authorities that the system trusts.
    pub fn new() -> Tls {
        Tls { authorities: None, client: None }
    }

    /// Trusts these authorities, in PEM, and no others.
    pub fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Tls {
        self.authorities = Some(pem.into());
        self
    }

    /// Presents this certificate, with its chain, and proves it by this key; both in PEM.
    pub fn client(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Tls {
        self.client = Some((certificate.into(), key.into()));
        self
    }

    /// Reads the certificates.
    ///
    /// # Errors
    /// One of them cannot be read; the text says which.
    pub(crate) fn config(&self) -> io::Result<ClientConfig> {
        const AUTHORITY: &str = "the certificate of an authority cannot be read";
        const OWN: &str = "the certificate of this node cannot be used";
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(pem) => {
                for authority in CertificateDer::pem_slice_iter(pem) {
                    let authority = authority.map_err(|why| wrong(AUTHORITY, why))?;
                    roots.add(authority).map_err(|why| wrong(AUTHORITY, why))?;
                }
            }
            None => {
                let mut system = rustls_native_certs::load_native_certs();
                if let Some(why) = system.errors.pop() {
                    return Err(wrong(AUTHORITY, why));
                }
                for authority in system.certs {
                    roots.add(authority).map_err(|why| wrong(AUTHORITY, why))?;
                }
            }
        }
        // Named, because rustls cannot choose if several are linked.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(io::Error::other)?.with_root_certificates(roots);
        let Some((certificate, key)) = &self.client else { return Ok(config.with_no_client_auth()) };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
        let chain = chain.map_err(|why| wrong(OWN, why))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|why| wrong(OWN, why))?;
        config.with_client_auth_cert(chain, key).map_err(|why| wrong(OWN, why))
    }
}

/// One session, after its handshake.
pub(crate) struct Session(Box<ClientConnection>);

impl Session {
    /// Makes a session; waits for the other end, as long as the socket does.
    pub(crate) fn open(
        tls: Option<&Tls>,
        host: &str,
        insecure: bool,
        socket: &mut std::net::TcpStream,
    ) -> io::Result<Session> {
        if insecure {
            return Err(io::Error::other("a connection without a check of the certificate is not offered"));
        }
        let config = tls.unwrap_or(&Tls::new()).config()?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut session = Box::new(session);
        // What the machine sends has its own bounds.
        session.set_buffer_limit(None);
        while session.is_handshaking() {
            session.complete_io(socket)?;
        }
        Ok(Session(session))
    }

    /// Reads what has come. Returns 0 at the end of the stream.
    pub(crate) fn read<S: Read + Write>(&mut self, socket: &mut S, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            if self.0.read_tls(socket)? == 0 {
                return Ok(0);
            }
            let taken = self.0.process_new_packets();
            // An alert or a new key; whether it can be sent shows at the next read or write.
            let _ = self.flush(socket);
            taken.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        }
    }

    /// Encrypts bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.writer().write_all(bytes)
    }

    /// Writes as much as the system takes.
    pub(crate) fn flush<S: Write>(&mut self, socket: &mut S) -> io::Result<()> {
        while self.0.wants_write() {
            match self.0.write_tls(socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
