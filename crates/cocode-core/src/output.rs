//! How much of a model's attention a result costs, how much is too much, and what is shown of what
//! is too much. Counts are estimates that never ask a tokenizer.

mod image;
mod preview;
mod tokens;

pub use image::{MAX_IMAGE_TOKENS, PixelSize, image_tokens, pixel_size};
pub use preview::{LeftOut, Preview, preview};
pub use tokens::{estimate_tokens, split_at_tokens};

/// How large a result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    /// More than so many tokens deserve a warning.
    pub warn_tokens: u64,
    /// More than so many tokens are not shown.
    pub cap_tokens: u64,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            warn_tokens: 10_000,
            cap_tokens: 25_000,
        }
    }
}

impl OutputLimits {
    /// The usual limits with another cap. Nothing below the cap is warned of that would not be
    /// otherwise.
    #[must_use]
    pub fn with_cap(cap_tokens: u64) -> Self {
        let usual = Self::default();
        Self {
            warn_tokens: usual.warn_tokens.min(cap_tokens),
            cap_tokens,
        }
    }

    /// Which limit so many tokens exceed.
    #[must_use]
    pub fn judge(&self, tokens: u64) -> OutputSize {
        if tokens > self.cap_tokens {
            OutputSize::TooLarge { tokens }
        } else if tokens > self.warn_tokens {
            OutputSize::Large { tokens }
        } else {
            OutputSize::Fits
        }
    }
}

/// A result, measured against [`OutputLimits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputSize {
    /// Within all limits.
    Fits,
    /// Shown, with a warning.
    Large {
        /// The estimate.
        tokens: u64,
    },
    /// More than is shown.
    TooLarge {
        /// The estimate.
        tokens: u64,
    },
}

#[cfg(test)]
#[path = "output/output_tests.rs"]
mod tests;
