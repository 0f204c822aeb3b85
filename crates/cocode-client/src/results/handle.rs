//! The names that kept results go by: short, easy to type, and never a path.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Hexadecimal digits behind the letter.
const DIGITS: usize = 10;

/// The name of a kept result: the letter `r` and ten hexadecimal digits, such as `r3f09c1d2ab`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultHandle(Box<str>);

/// Why a text is no [`ResultHandle`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a handle is the letter r and {DIGITS} hexadecimal digits, or the first few of them")]
pub struct InvalidResultHandle;

impl ResultHandle {
    /// A handle that is most probably new.
    pub(super) fn random() -> Self {
        let number = fastrand::u64(..1 << (4 * DIGITS));
        Self(format!("r{number:0DIGITS$x}").into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The beginning of a handle, as somebody typed it, in the spelling of handles.
pub(super) fn beginning(text: &str) -> Result<String, InvalidResultHandle> {
    let text = text.to_ascii_lowercase();
    let digits = text.strip_prefix('r').ok_or(InvalidResultHandle)?;
    let is_digit = |byte: u8| byte.is_ascii_hexdigit();
    if (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(is_digit) {
        Ok(text)
    } else {
        Err(InvalidResultHandle)
    }
}

impl FromStr for ResultHandle {
    type Err = InvalidResultHandle;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = beginning(text)?;
        if text.len() == DIGITS + 1 {
            Ok(Self(text.into()))
        } else {
            Err(InvalidResultHandle)
        }
    }
}

impl fmt::Display for ResultHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::ResultHandle;

    #[test]
    fn handles_are_short_and_cannot_lead_out_of_a_directory() {
        for _ in 0..1_000 {
            let handle = ResultHandle::random();
            assert_eq!(handle.as_str().parse(), Ok(handle.clone()));
            assert_eq!(handle.as_str().len(), 11);
        }
        assert_eq!(
            "R00AB12cd34".parse::<ResultHandle>().unwrap().as_str(),
            "r00ab12cd34"
        );
        for bad in [
            "",
            "r",
            "r123456789",
            "r123456789ab",
            "x0123456789",
            "r012345678g",
            "../12345678",
            "r/../../etc",
            "r01234567é",
            "r0123456789\n",
        ] {
            assert!(bad.parse::<ResultHandle>().is_err(), "{bad:?}");
        }
    }
}
