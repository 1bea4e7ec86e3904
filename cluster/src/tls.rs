//! What a node trusts, and how it shows who it is.

use redis::{ClientTlsConfig, TlsCertificates};

/// Certificates for a store whose URL begins with `rediss`. Needs the feature `tls`.
///
/// Without any, the authorities of the system are trusted, or those of the file that `SSL_CERT_FILE` names.
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
    /// Starts with what the system trusts.
    pub fn new() -> Tls {
        Tls { certificates: TlsCertificates { client_tls: None, root_cert: None } }
    }

    /// Trusts these authorities, in PEM, and no others.
    pub fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Tls {
        self.certificates.root_cert = Some(pem.into());
        self
    }

    /// Shows this certificate, with its chain, and proves it by this key; both in PEM.
    pub fn client(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Tls {
        let client = ClientTlsConfig { client_cert: certificate.into(), client_key: key.into() };
        self.certificates.client_tls = Some(client);
        self
    }

    pub(crate) fn certificates(&self) -> TlsCertificates {
        self.certificates.clone()
    }
}

/// Makes ring the provider of this process, if it has none: rustls asks for one by name where several are linked.
pub(crate) fn provide() {
    // Another one that was first is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
