//! Estimates, previews and images, by example and for any text.

use proptest::prelude::*;

use super::{
    MAX_IMAGE_TOKENS, OutputLimits, OutputSize, PixelSize, estimate_tokens, image_tokens,
    pixel_size, preview, split_at_tokens,
};

#[test]
fn text_is_estimated_by_its_script() {
    for (text, tokens) in [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("中文字符", 4),
        ("ひらがな", 4),
        ("한국어", 3),
        ("привет", 3),
        ("naïve", 2),
        ("🎉", 2),
        ("a中b", 2),
    ] {
        assert_eq!(estimate_tokens(text), tokens, "{text}");
    }
    assert_eq!(estimate_tokens(&"x".repeat(4_000)), 1_000);
    // A character across the blocks that are weighed at once.
    assert_eq!(estimate_tokens(&format!("{}中", "x".repeat(255))), 65);
}

#[test]
fn limits_are_exceeded_only_by_more_than_they_say() {
    let limits = OutputLimits::default();
    for (tokens, expected) in [
        (10_000, OutputSize::Fits),
        (10_001, OutputSize::Large { tokens: 10_001 }),
        (25_000, OutputSize::Large { tokens: 25_000 }),
        (25_001, OutputSize::TooLarge { tokens: 25_001 }),
    ] {
        assert_eq!(limits.judge(tokens), expected);
    }
    assert_eq!(OutputLimits::with_cap(25_000), limits);
    assert_eq!(
        OutputLimits::with_cap(500),
        OutputLimits {
            warn_tokens: 500,
            cap_tokens: 500
        }
    );
    assert_eq!(OutputLimits::with_cap(1_000_000).warn_tokens, 10_000);
}

#[test]
fn a_preview_keeps_whole_lines_of_both_ends_and_counts_the_rest() {
    let lines: Vec<String> = (0..1_000).map(|line| format!("line {line}\n")).collect();
    let text = lines.concat();
    let shown = preview(&text, 60);
    let lines: Vec<&str> = shown.text.lines().collect();
    let gap = lines
        .iter()
        .position(|line| line.starts_with("[..."))
        .unwrap();
    for (number, line) in lines.iter().take(gap).enumerate() {
        assert_eq!(*line, format!("line {number}"));
    }
    for (number, line) in lines.iter().rev().enumerate().take(lines.len() - gap - 1) {
        assert_eq!(*line, format!("line {}", 999 - number));
    }
    let left_out = shown.left_out.unwrap();
    assert_eq!(left_out.lines, 1_000 - (lines.len() - 1));
    assert!(gap > lines.len() - gap, "{lines:?}");
    assert_eq!(
        lines.get(gap).copied(),
        Some(
            format!(
                "[... {} lines, {} bytes, about {} tokens left out ...]",
                left_out.lines, left_out.bytes, left_out.tokens
            )
            .as_str()
        )
    );
}

#[test]
fn a_preview_of_one_long_line_is_cut_between_characters() {
    let text = "中".repeat(1_000);
    let shown = preview(&text, 100);
    let left_out = shown.left_out.unwrap();
    let kept = shown.text.chars().filter(|letter| *letter == '中').count();
    assert_eq!(kept * 3 + left_out.bytes, text.len());
    assert!(kept > 50, "{kept}");
    assert_eq!(left_out.lines, 1);
}

#[test]
fn no_budget_shows_nothing() {
    let shown = preview("something", 0);
    assert_eq!(shown.text, "");
    assert_eq!(shown.left_out.map(|left_out| left_out.bytes), Some(9));
    assert_eq!(preview("", 0).left_out, None);
}

proptest! {
    #[test]
    fn no_preview_exceeds_its_budget(text in texts(), budget in 0_u64..200) {
        let shown = preview(&text, budget);
        prop_assert!(estimate_tokens(&shown.text) <= budget);
        prop_assert_eq!(shown.left_out.is_none(), estimate_tokens(&text) <= budget);
        if shown.left_out.is_none() {
            prop_assert_eq!(&*shown.text, &*text);
        }
    }

    #[test]
    fn what_is_shown_and_what_is_left_out_add_up(text in texts(), budget in 0_u64..200) {
        let shown = preview(&text, budget);
        let Some(left_out) = shown.left_out else { return Ok(()) };
        // The gap may be at any place where the mark stands; one of them must explain the text.
        let mark = format!(
            "[... {} line{}, {} bytes, about {} tokens left out ...]\n",
            left_out.lines,
            if left_out.lines == 1 { "" } else { "s" },
            left_out.bytes,
            left_out.tokens,
        );
        let explained = match shown.text.split_once(&mark) {
            None => text.starts_with(&*shown.text)
                && shown.text.len() + left_out.bytes == text.len(),
            Some((head, tail)) => {
                let fits = |head: &str| {
                    text.starts_with(head)
                        && text.ends_with(tail)
                        && head.len() + tail.len() + left_out.bytes == text.len()
                };
                fits(head) || head.strip_suffix('\n').is_some_and(fits)
            }
        };
        prop_assert!(explained, "{:?}", shown);
    }

    #[test]
    fn a_split_loses_nothing_and_keeps_the_budget(text in texts(), budget in 0_u64..200) {
        let (head, rest) = split_at_tokens(&text, budget);
        prop_assert_eq!(format!("{head}{rest}"), text.clone());
        prop_assert!(estimate_tokens(head) <= budget);
        if let Some(next) = rest.chars().next() {
            let more = format!("{head}{next}");
            prop_assert!(estimate_tokens(&more) > budget);
        }
    }

    #[test]
    fn estimates_of_parts_add_up(a in texts(), b in texts()) {
        let whole = estimate_tokens(&format!("{a}{b}"));
        let parts = estimate_tokens(&a) + estimate_tokens(&b);
        prop_assert!(whole <= parts && parts <= whole + 1);
    }

    #[test]
    fn any_bytes_are_an_image_of_at_most_the_cap(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let tokens = image_tokens(&bytes);
        prop_assert!((1..=MAX_IMAGE_TOKENS).contains(&tokens));
    }

    #[test]
    fn any_jpeg_segments_come_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let file = [&[0xff, 0xd8, 0xff][..], &bytes].concat();
        prop_assert!(image_tokens(&file) <= MAX_IMAGE_TOKENS);
    }
}

const LETTERS: &[&str] = &[
    "a", "word ", "é", "я", "中", "👍", "\n", "\r\n", "\u{2028}", "\0",
];

/// Lines and long words of several scripts.
fn texts() -> impl Strategy<Value = String> {
    let piece = (prop::sample::select(LETTERS), 1_usize..60);
    let pieces = prop::collection::vec(piece, 0..20);
    pieces.prop_map(|pieces| {
        let repeated = pieces.iter().map(|(letter, times)| letter.repeat(*times));
        repeated.collect()
    })
}

/// The first bytes of a PNG of this size.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes
}

#[test]
fn the_size_of_every_common_format_is_read() {
    let size = Some(PixelSize {
        width: 640,
        height: 480,
    });
    let jpeg = [
        &b"\xff\xd8"[..],
        b"\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x48\0\x48\0\0",
        b"\xff\xff\xdb\x00\x04\0\0",
        b"\xff\xc2\x00\x11\x08\x01\xe0\x02\x80\x03",
    ]
    .concat();
    let lossless = (639_u32 + (479 << 14)).to_le_bytes();
    let webp = |chunk: &[u8]| [&b"RIFF\0\0\0\0WEBP"[..], chunk].concat();
    for (name, header) in [
        ("png", png(640, 480)),
        ("jpeg", jpeg),
        ("gif", b"GIF89a\x80\x02\xe0\x01\0".to_vec()),
        (
            "lossy",
            webp(b"VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\xe0\x01"),
        ),
        (
            "lossless",
            webp(&[&b"VP8L\0\0\0\0\x2f"[..], &lossless].concat()),
        ),
        (
            "extended",
            webp(b"VP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0"),
        ),
    ] {
        assert_eq!(pixel_size(&header), size, "{name}");
        assert_eq!(image_tokens(&header), 410, "{name}");
        let short = header.split_last_chunk::<4>().unwrap().0;
        assert_eq!(pixel_size(short), None, "{name} cut short");
    }
}

#[test]
fn an_image_costs_no_more_than_the_cap_and_no_less_than_a_token() {
    for (header, tokens) in [
        (png(1, 1), 1),
        (png(1_000, 750), 1_000),
        (png(1_200, 1_000), 1_600),
        (png(u32::MAX, u32::MAX), MAX_IMAGE_TOKENS),
        (png(0, 480), MAX_IMAGE_TOKENS),
        (b"<svg xmlns=\"\"/>".to_vec(), MAX_IMAGE_TOKENS),
        (Vec::new(), MAX_IMAGE_TOKENS),
    ] {
        assert_eq!(image_tokens(&header), tokens);
    }
}
