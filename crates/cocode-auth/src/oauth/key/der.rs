//! Reads private keys in DER: PKCS#8 (RFC 5958), and the older forms PKCS#1 (RFC 8017) and SEC1
//! (RFC 5915). Which one it is shows in the second member, so nobody has to say.

use super::KeyError;

/// What a private key consists of.
pub(super) enum Material<'a> {
    /// A number, and its point if that was given too.
    Curve {
        curve: Curve,
        private: &'a [u8],
        public: Option<&'a [u8]>,
    },
    /// As PKCS#1.
    Rsa { pkcs1: &'a [u8], pss_only: bool },
    /// The seed, and the public half if that was given too.
    Ed25519 {
        seed: &'a [u8],
        public: Option<&'a [u8]>,
    },
}

/// The elliptic curves of ECDSA that we know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[0] EXPLICIT`, the curve in SEC1; `[0] IMPLICIT SET`, the attributes in PKCS#8.
const CONTEXT_0: u8 = 0xa0;
/// `[1] EXPLICIT BIT STRING`, the public half in SEC1.
const CONTEXT_1: u8 = 0xa1;
/// `[1] IMPLICIT BIT STRING`, the public half in PKCS#8.
const CONTEXT_1_PRIMITIVE: u8 = 0x81;

const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const RSA_PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const ED448: &[u8] = &[0x2b, 0x65, 0x71];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const P521: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];
const SECP256K1: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x0a];

/// Takes a private key apart.
pub(super) fn parse(der: &[u8]) -> Result<Material<'_>, KeyError> {
    let mut members = Reader(Reader(der).expect(SEQUENCE)?);
    members.expect(INTEGER)?;
    match members.0.first() {
        Some(&SEQUENCE) => pkcs8(members),
        Some(&OCTET_STRING) => sec1(members, None),
        Some(&INTEGER) => Ok(Material::Rsa {
            pkcs1: der,
            pss_only: false,
        }),
        _ => Err(KeyError::Damaged("it is no private key")),
    }
}

/// What follows the version.
fn pkcs8(mut members: Reader<'_>) -> Result<Material<'_>, KeyError> {
    let mut algorithm = Reader(members.expect(SEQUENCE)?);
    let kind = algorithm.expect(OBJECT)?;
    let key = members.expect(OCTET_STRING)?;
    members.optional(CONTEXT_0)?;
    let public = members.optional(CONTEXT_1_PRIMITIVE)?;
    match kind {
        RSA_ENCRYPTION | RSA_PSS => Ok(Material::Rsa {
            pkcs1: key,
            pss_only: kind == RSA_PSS,
        }),
        EC_PUBLIC_KEY => {
            let curve = curve(&mut algorithm)?;
            let mut members = Reader(Reader(key).expect(SEQUENCE)?);
            members.expect(INTEGER)?;
            sec1(members, Some(curve))
        }
        ED25519 => Ok(Material::Ed25519 {
            seed: Reader(key).expect(OCTET_STRING)?,
            public: public.map(whole_bytes).transpose()?,
        }),
        ED448 => Err(KeyError::Unsupported("Ed448")),
        _ => Err(KeyError::Unsupported("an unknown kind")),
    }
}

/// What follows the version. Inside of PKCS#8 the curve is known already.
fn sec1(mut members: Reader<'_>, known: Option<Curve>) -> Result<Material<'_>, KeyError> {
    let private = members.expect(OCTET_STRING)?;
    let named = members.optional(CONTEXT_0)?;
    let public = members.optional(CONTEXT_1)?;
    let curve = match (known, named) {
        (Some(curve), _) => curve,
        (None, Some(named)) => curve(&mut Reader(named))?,
        (None, None) => return Err(KeyError::Damaged("it does not name its curve")),
    };
    let public = public
        .map(|public| Reader(public).expect(BIT_STRING).and_then(whole_bytes))
        .transpose()?;
    Ok(Material::Curve {
        curve,
        private,
        public,
    })
}

fn curve(parameters: &mut Reader<'_>) -> Result<Curve, KeyError> {
    if parameters.0.first() == Some(&SEQUENCE) {
        return Err(KeyError::Unsupported(
            "a curve that is described instead of named",
        ));
    }
    match parameters.expect(OBJECT)? {
        P256 => Ok(Curve::P256),
        P384 => Ok(Curve::P384),
        P521 => Err(KeyError::Unsupported("P-521")),
        SECP256K1 => Err(KeyError::Unsupported("secp256k1")),
        _ => Err(KeyError::Unsupported("an unknown curve")),
    }
}

/// What is in a bit string of whole bytes.
fn whole_bytes(bits: &[u8]) -> Result<&[u8], KeyError> {
    match bits.split_first() {
        Some((0, bytes)) => Ok(bytes),
        _ => Err(KeyError::Damaged("its public half has a broken byte")),
    }
}

/// The values that are still to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The content of the next value, which must be of this kind.
    fn expect(&mut self, tag: u8) -> Result<&'a [u8], KeyError> {
        self.optional(tag)?
            .ok_or(KeyError::Damaged("it is not built like a private key"))
    }

    /// The content of the next value, if it is of this kind.
    fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, KeyError> {
        if self.0.first() != Some(&tag) {
            return Ok(None);
        }
        let (content, rest) = self.next().ok_or(KeyError::Damaged("its end is missing"))?;
        self.0 = rest;
        Ok(Some(content))
    }

    /// The next value and what follows it.
    fn next(&self) -> Option<(&'a [u8], &'a [u8])> {
        let (&length, rest) = self.0.get(1..)?.split_first()?;
        let (length, rest) = match length {
            0..=0x7f => (usize::from(length), rest),
            // No private key is so long that its length takes more than two bytes.
            0x81 | 0x82 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
                let length = bytes
                    .iter()
                    .fold(0, |length, &byte| (length << 8) | usize::from(byte));
                (length, rest)
            }
            _ => return None,
        };
        rest.split_at_checked(length)
    }
}
