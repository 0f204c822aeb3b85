//! Certificates and keys for servers, from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The file cannot be read, or is not PEM.
    #[error("cannot read certificates from {}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// The file holds something else.
    #[error("there is no certificate in {}", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read, or holds no key.
    #[error("cannot read a private key from {}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// Certificate and key do not make a server.
    #[error("the certificate in {} and the key in {} do not work together", certificate.display(), key.display())]
    Mismatch {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
}

/// A server's TLS setup, from a chain of certificates, the server's own first, and its key.
pub fn tls_from_pem(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let unreadable = |source| TlsError::Certificate {
        path: certificate.to_owned(),
        source,
    };
    let chain = CertificateDer::pem_file_iter(certificate).map_err(unreadable)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    if chain.is_empty() {
        let path = certificate.to_owned();
        return Err(TlsError::NoCertificate { path });
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::Key {
        path: key.to_owned(),
        source,
    })?;
    let mismatch = |source| TlsError::Mismatch {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(mismatch)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(mismatch)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
