//! The certificates that a node trusts, and its own.

use redis::{ClientTlsConfig, TlsCertificates};

/// Holds certificates for a store whose URL begins with `rediss`. Needs the feature `tls`.
///
/// Without any, the node trusts the authorities of the system, or those in the file that `SSL_CERT_FILE` names.
#[derive(Clone, Debug)]
pub struct Tls {
    certificates: TlsCertificates,
}

impl Default for Tls {
    fn default() -> Self {
        Tls::new()
    }
}

impl Tls {
    /// Starts with the authorities that the system trusts.
    pub fn new() -> Tls {
        Tls { certificates: TlsCertificates { client_tls: None, root_cert: None } }
    }

    /// Trusts these authorities, in PEM, and no others.
    pub fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Tls {
        self.certificates.root_cert = Some(pem.into());
        self
    }

    /// Presents this certificate, with its chain, and proves it by this key; both in PEM.
    pub fn client(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Tls {
        let client = ClientTlsConfig { client_cert: certificate.into(), client_key: key.into() };
        self.certificates.client_tls = Some(client);
        self
    }

    pub(crate) fn certificates(&self) -> TlsCertificates {
        self.certificates.clone()
    }
}

/// Makes ring the provider of this process, if it has none: rustls needs to be told if several are linked.
pub(crate) fn provide() {
    // If another provider was set first, that one is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
