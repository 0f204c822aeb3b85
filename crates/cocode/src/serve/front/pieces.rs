//! Cuts what was read at the ends of lines, so that a connection that is lost is never lost within a
//! message. Only a line that is far too long is passed on in pieces.

use bytes::{Bytes, BytesMut};
use memchr::memrchr;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// What is read at once.
const READ_BYTES: usize = 64 * 1024;
/// The longest line that is kept back until its end has come.
const MAX_HELD_BYTES: usize = 32 * 1024 * 1024;

/// What was read and not passed on.
#[derive(Debug)]
pub(super) struct Pieces {
    buffer: BytesMut,
    /// How much of the buffer has no end of a line.
    n_searched: usize,
    longest: usize,
    /// The beginning of the line was passed on without its end.
    is_cut: bool,
    /// Lines that nobody has taken yet.
    untaken: Option<Bytes>,
    /// What becomes of a last line without an end.
    last: Last,
}

/// What a source that ends within a line has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// All that it wanted to: some leave the end of their last line out.
    Whole,
    /// Not all: it was lost.
    Torn,
}

/// Something to pass on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Whole lines, or the beginning of one that is too long.
    Lines(Bytes),
    /// More of a line that is too long.
    More(Bytes),
}

impl Pieces {
    pub(super) fn new(unread: &[u8], last: Last) -> Self {
        Self {
            buffer: BytesMut::from(unread),
            n_searched: 0,
            longest: MAX_HELD_BYTES,
            is_cut: false,
            untaken: None,
            last,
        }
    }

    /// Keeps lines until it is known that somebody takes them: otherwise they come next.
    pub(super) fn keep(&mut self, lines: &Bytes) {
        self.untaken = Some(lines.clone());
    }

    /// Lets these lines come first.
    pub(super) fn put_back(&mut self, lines: Bytes) {
        if lines.is_empty() {
            return;
        }
        self.untaken = Some(match self.untaken.take() {
            Some(untaken) => [lines, untaken].concat().into(),
            None => lines,
        });
    }

    /// Somebody takes what was kept.
    pub(super) fn taken(&mut self) {
        self.untaken = None;
    }

    /// The next piece. Nothing at the end of the source.
    ///
    /// Cancel safe: what was read stays here.
    pub(super) async fn next(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> std::io::Result<Option<Piece>> {
        if let Some(lines) = self.untaken.take() {
            return Ok(Some(Piece::Lines(lines)));
        }
        loop {
            if let Some(piece) = self.cut() {
                return Ok(Some(piece));
            }
            self.buffer.reserve(READ_BYTES);
            if source.read_buf(&mut self.buffer).await? == 0 {
                return Ok(self.last());
            }
        }
    }

    /// Whether a line was begun that has not ended.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Passes over the rest of a line that nobody has the beginning of.
    pub(super) async fn skip_cut(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> std::io::Result<()> {
        while self.is_cut && self.untaken.is_none() {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer) {
                drop(self.buffer.split_to(end + 1));
                self.is_cut = false;
            } else {
                self.buffer.clear();
                if source.read_buf(&mut self.buffer).await? == 0 {
                    self.is_cut = false;
                }
            }
            self.n_searched = 0;
        }
        Ok(())
    }

    fn cut(&mut self) -> Option<Piece> {
        if self.is_cut {
            let end = memchr::memchr(b'\n', &self.buffer);
            self.is_cut = end.is_none();
            let more = match end {
                Some(end) => self.buffer.split_to(end + 1),
                None => self.buffer.split(),
            };
            self.n_searched = 0;
            return (!more.is_empty()).then(|| Piece::More(more.freeze()));
        }
        let new = self.buffer.get(self.n_searched..).unwrap_or_default();
        if let Some(end) = memrchr(b'\n', new) {
            let lines = self.buffer.split_to(self.n_searched + end + 1);
            self.n_searched = self.buffer.len();
            return Some(Piece::Lines(lines.freeze()));
        }
        self.n_searched = self.buffer.len();
        if self.buffer.len() <= self.longest {
            return None;
        }
        self.is_cut = true;
        self.n_searched = 0;
        Some(Piece::Lines(self.buffer.split().freeze()))
    }

    fn last(&mut self) -> Option<Piece> {
        self.n_searched = 0;
        if self.last == Last::Torn {
            self.buffer.clear();
        }
        if self.buffer.is_empty() {
            return None;
        }
        self.buffer.extend_from_slice(b"\n");
        self.cut()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Last, Piece, Pieces};

    fn lines(text: &'static str) -> Piece {
        Piece::Lines(Bytes::from_static(text.as_bytes()))
    }

    fn more(text: &'static str) -> Piece {
        Piece::More(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn only_whole_lines_are_passed_on() {
        let mut pieces = Pieces::new(b"un", Last::Whole);
        let mut source = chunks(&[b"read\na\nb", b"c\n", b"last"]);
        assert_eq!(
            pieces.next(&mut source).await.unwrap(),
            Some(lines("unread\na\n"))
        );
        assert_eq!(pieces.next(&mut source).await.unwrap(), Some(lines("bc\n")));
        assert_eq!(
            pieces.next(&mut source).await.unwrap(),
            Some(lines("last\n"))
        );
        assert_eq!(pieces.next(&mut source).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_comes_in_pieces_and_can_be_passed_over() {
        let mut pieces = Pieces::new(b"", Last::Whole);
        pieces.longest = 4;
        let mut source = chunks(&[b"12345", b"678", b"9\nx\n", b"abcdef", b"gh\ny\n"]);
        assert_eq!(
            pieces.next(&mut source).await.unwrap(),
            Some(lines("12345"))
        );
        assert!(pieces.is_cut());
        assert_eq!(pieces.next(&mut source).await.unwrap(), Some(more("678")));
        assert_eq!(pieces.next(&mut source).await.unwrap(), Some(more("9\n")));
        assert!(!pieces.is_cut());
        assert_eq!(pieces.next(&mut source).await.unwrap(), Some(lines("x\n")));
        assert_eq!(
            pieces.next(&mut source).await.unwrap(),
            Some(lines("abcdef"))
        );
        pieces.skip_cut(&mut source).await.unwrap();
        assert_eq!(pieces.next(&mut source).await.unwrap(), Some(lines("y\n")));
    }

    #[tokio::test]
    async fn lines_that_nobody_took_come_again() {
        let mut pieces = Pieces::new(b"", Last::Whole);
        pieces.longest = 4;
        let mut source = chunks(&[b"a\n", b"12345", b"6\n"]);
        for is_taken in [false, true] {
            let piece = pieces.next(&mut source).await.unwrap();
            assert_eq!(piece, Some(lines("a\n")));
            pieces.keep(&Bytes::from_static(b"a\n"));
            if is_taken {
                pieces.taken();
            }
        }
        let piece = pieces.next(&mut source).await.unwrap();
        assert_eq!(piece, Some(lines("12345")));
        pieces.keep(&Bytes::from_static(b"12345"));
        // Its beginning is not lost, so its end is not passed over.
        pieces.skip_cut(&mut source).await.unwrap();
        let piece = pieces.next(&mut source).await.unwrap();
        assert_eq!(piece, Some(lines("12345")));
        assert_eq!(pieces.next(&mut source).await.unwrap(), Some(more("6\n")));
    }

    /// A source that gives one of these with every read.
    fn chunks(chunks: &[&'static [u8]]) -> Chunks {
        Chunks(chunks.iter().copied().collect())
    }

    struct Chunks(std::collections::VecDeque<&'static [u8]>);

    impl tokio::io::AsyncRead for Chunks {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _context: &mut std::task::Context<'_>,
            buffer: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            if let Some(chunk) = self.0.pop_front() {
                buffer.put_slice(chunk);
            }
            std::task::Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_line_that_was_torn_is_passed_on_to_nobody() {
        let mut source = &b"one\n{\"id\":1,\"result\":{\"a"[..];
        let mut pieces = Pieces::new(b"", Last::Torn);
        assert_eq!(
            pieces.next(&mut source).await.unwrap(),
            Some(lines("one\n"))
        );
        assert_eq!(pieces.next(&mut source).await.unwrap(), None);
        assert!(!pieces.is_cut());
    }
}
