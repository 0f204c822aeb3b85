//! What an image costs, by the pixel size that its first bytes tell.

/// What any image costs at most: providers scale down what is larger.
pub const MAX_IMAGE_TOKENS: u64 = 1_600;

/// So many pixels are one token.
const PIXELS_PER_TOKEN: u64 = 750;

/// The size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelSize {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

/// About how many tokens a model reads in an image: one for 750 pixels, and never more than
/// [`MAX_IMAGE_TOKENS`], which is also the answer for an image whose size cannot be told.
///
/// `header` is the beginning of the file: 32 bytes are enough for PNG, GIF and WebP; in JPEG the size
/// stands behind embedded metadata.
#[must_use]
pub fn image_tokens(header: &[u8]) -> u64 {
    let Some(PixelSize { width, height }) = pixel_size(header) else {
        return MAX_IMAGE_TOKENS;
    };
    let pixels = u64::from(width) * u64::from(height);
    pixels.div_ceil(PIXELS_PER_TOKEN).min(MAX_IMAGE_TOKENS)
}

/// The size of a PNG, JPEG, GIF or WebP image, read from the beginning of its file. Nothing for other
/// formats, for a beginning that is too short, and for an image without pixels.
#[must_use]
pub fn pixel_size(header: &[u8]) -> Option<PixelSize> {
    let size = png(header)
        .or_else(|| gif(header))
        .or_else(|| webp(header))
        .or_else(|| jpeg(header))?;
    (size.width > 0 && size.height > 0).then_some(size)
}

fn png(header: &[u8]) -> Option<PixelSize> {
    let rest = header.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    // The first chunk: four bytes of length, its name, then width and height.
    (rest.get(4..8)? == b"IHDR").then_some(())?;
    Some(PixelSize {
        width: u32::from_be_bytes(array(rest, 8)?),
        height: u32::from_be_bytes(array(rest, 12)?),
    })
}

fn gif(header: &[u8]) -> Option<PixelSize> {
    let rest = header
        .strip_prefix(b"GIF87a")
        .or_else(|| header.strip_prefix(b"GIF89a"))?;
    Some(PixelSize {
        width: u16::from_le_bytes(array(rest, 0)?).into(),
        height: u16::from_le_bytes(array(rest, 2)?).into(),
    })
}

fn webp(header: &[u8]) -> Option<PixelSize> {
    let rest = header.strip_prefix(b"RIFF")?.get(4..)?;
    let rest = rest.strip_prefix(b"WEBP")?;
    let chunk = rest.get(8..)?;
    match rest.get(..4)? {
        // Lossy: three bytes of frame tag, three of start code, then 14 bits each.
        b"VP8 " => {
            (chunk.get(3..6)? == [0x9d, 0x01, 0x2a]).then_some(())?;
            Some(PixelSize {
                width: u32::from(u16::from_le_bytes(array(chunk, 6)?) & 0x3fff),
                height: u32::from(u16::from_le_bytes(array(chunk, 8)?) & 0x3fff),
            })
        }
        // Lossless: one byte of signature, then 14 bits each, one less than the size.
        b"VP8L" => {
            (*chunk.first()? == 0x2f).then_some(())?;
            let bits = u32::from_le_bytes(array(chunk, 1)?);
            Some(PixelSize {
                width: (bits & 0x3fff) + 1,
                height: (bits >> 14 & 0x3fff) + 1,
            })
        }
        // Extended: four bytes of flags, then 24 bits each, one less than the size.
        b"VP8X" => {
            let less_one = |at| {
                let [a, b, c] = array(chunk, at)?;
                Some(u32::from_le_bytes([a, b, c, 0]) + 1)
            };
            Some(PixelSize {
                width: less_one(4)?,
                height: less_one(7)?,
            })
        }
        _ => None,
    }
}

fn jpeg(header: &[u8]) -> Option<PixelSize> {
    let mut rest = header.strip_prefix(&[0xff, 0xd8])?;
    loop {
        // Any number of 0xff may stand before a marker.
        let after = rest.strip_prefix(&[0xff])?;
        let fill = after.iter().take_while(|byte| **byte == 0xff).count();
        let (marker, segment) = after.get(fill..)?.split_first()?;
        match marker {
            // Markers that stand alone.
            0x01 | 0xd0..=0xd7 => rest = segment,
            // A frame: length, precision, height, width. The three left out are tables.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some(PixelSize {
                    height: u16::from_be_bytes(array(segment, 3)?).into(),
                    width: u16::from_be_bytes(array(segment, 5)?).into(),
                });
            }
            // The end, or pixels before any frame.
            0xd9 | 0xda => return None,
            _ => {
                let length = usize::from(u16::from_be_bytes(array(segment, 0)?));
                // A length counts its own two bytes; less would lead nowhere.
                rest = segment.get(length.max(2)..)?;
            }
        }
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
