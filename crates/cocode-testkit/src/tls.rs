//! A certificate for the loopback interface, from an authority that nobody trusts by itself.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// What a server needs to speak TLS, and a client to believe it.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) acceptor: TlsAcceptor,
    /// The certificate of the authority.
    pub(crate) authority_pem: String,
    /// The certificate of the server, and its key: for programs that read them from files.
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Identity")
            .field("authority_pem", &self.authority_pem)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// A new one, from an authority of its own.
    pub(crate) fn generate() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are valid names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().expect("keys can be made");
        let authority = params.self_signed(&authority_key);
        let authority_pem = authority.expect("an authority can sign itself").pem();
        let issuer = Issuer::new(params, authority_key);
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("these are valid names");
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.signed_by(&key, &issuer);
        let certificate = certificate.expect("an authority can sign");
        let (certificate_pem, key_pem) = (certificate.pem(), key.serialize_pem());
        let certificate = certificate.der().clone();
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("the key was just made");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider knows the usual versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("the key fits its certificate");
        Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            authority_pem,
            certificate_pem,
            key_pem,
        }
    }
}
