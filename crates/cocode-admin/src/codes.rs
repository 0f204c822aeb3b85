//! One-time codes: printed where the gateway was started, typed into a browser, good once.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::Code;
use crate::moment::Moment;
use crate::random::{Print, print_of, random, same};
use crate::refusal::Refusal;
use crate::secret::Secret;

/// How long a code can be used.
pub const CODE_LIFETIME: Duration = Duration::from_mins(10);
/// Wrong codes within [`GUESS_WINDOW`] that are answered as such; whoever goes on is told to wait. The
/// right one counts at any time: it cannot be guessed, and nobody is to keep others out by wrong ones.
pub const MAX_GUESSES: usize = 10;
/// See [`MAX_GUESSES`].
pub const GUESS_WINDOW: Duration = Duration::from_mins(1);

/// Five bits each, so 80 altogether.
const CODE_LETTERS: usize = 16;
const GROUP_LETTERS: usize = 4;
/// Digits and letters without those that are taken for others, and without U, which makes words.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const PURPOSE: &str = "one-time code";

/// The code that can be used now, if any, and what was tried.
#[derive(Debug, Default)]
pub(crate) struct Codes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    current: Option<Current>,
    /// When wrong codes came, the oldest first.
    guesses: VecDeque<Instant>,
}

struct Current {
    print: Print,
    until: Instant,
}

/// What came of a code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redeemed {
    /// It was the one, and is used up.
    Right,
    /// It was not, or is not any more.
    Wrong,
    /// It was not, and there were too many wrong ones. Another can be tried after this time.
    TooMany(Duration),
}

impl Codes {
    /// Makes a code. Any other is worthless from now on.
    pub(crate) fn make(&self) -> Result<Code, Refusal> {
        let letters: String = random::<CODE_LETTERS>()?
            .iter()
            .filter_map(|byte| ALPHABET.get(usize::from(byte % 32)))
            .map(|letter| char::from(*letter))
            .collect();
        let current = Current {
            print: print_of(PURPOSE, &letters),
            until: Instant::now() + CODE_LIFETIME,
        };
        self.lock().current = Some(current);
        Ok(Code {
            code: Secret::new(grouped(&letters)),
            expires_at: Moment::now().after(CODE_LIFETIME),
        })
    }

    /// Uses a code.
    pub(crate) fn redeem(&self, typed: &str) -> Redeemed {
        let print = print_of(PURPOSE, &meant(typed));
        let now = Instant::now();
        let mut state = self.lock();
        let is_right = |current: &mut Current| now < current.until && same(&current.print, &print);
        if state.current.take_if(is_right).is_some() {
            return Redeemed::Right;
        }
        let is_old = |guess: &Instant| now.duration_since(*guess) >= GUESS_WINDOW;
        while state.guesses.front().is_some_and(is_old) {
            state.guesses.pop_front();
        }
        if state.guesses.len() >= MAX_GUESSES
            && let Some(oldest) = state.guesses.front()
        {
            return Redeemed::TooMany(GUESS_WINDOW.saturating_sub(now.duration_since(*oldest)));
        }
        state.guesses.push_back(now);
        Redeemed::Wrong
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Current {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Current").finish_non_exhaustive()
    }
}

/// A code as people read it: `K7QF-M2XD-9HTR-4WCE`.
fn grouped(letters: &str) -> String {
    let mut text = String::with_capacity(CODE_LETTERS + CODE_LETTERS / GROUP_LETTERS);
    for (index, letter) in letters.chars().enumerate() {
        if index > 0 && index % GROUP_LETTERS == 0 {
            text.push('-');
        }
        text.push(letter);
    }
    text
}

/// What somebody means who types a code.
fn meant(typed: &str) -> String {
    let is_letter = |letter: &char| !letter.is_whitespace() && *letter != '-';
    let letters = typed.chars().filter(is_letter);
    letters
        .map(|letter| match letter.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CODE_LIFETIME, Codes, GUESS_WINDOW, MAX_GUESSES, Redeemed, meant};

    #[tokio::test(start_paused = true)]
    async fn a_code_is_good_once_and_only_for_a_while() {
        let codes = Codes::default();
        assert_eq!(codes.redeem(""), Redeemed::Wrong);
        let code = codes.make().unwrap();
        let text = code.code.expose();
        let groups: Vec<_> = text.split('-').map(str::len).collect();
        assert_eq!(groups, [4; 4]);
        assert_eq!(codes.redeem("0000-0000-0000-0000"), Redeemed::Wrong);
        assert_eq!(codes.redeem(text), Redeemed::Right);
        assert_eq!(codes.redeem(text), Redeemed::Wrong);

        let late = codes.make().unwrap();
        tokio::time::advance(CODE_LIFETIME).await;
        assert_eq!(codes.redeem(late.code.expose()), Redeemed::Wrong);

        let replaced = codes.make().unwrap();
        let newer = codes.make().unwrap();
        assert_eq!(codes.redeem(replaced.code.expose()), Redeemed::Wrong);
        let sloppy = newer.code.expose().to_lowercase().replace('-', " ");
        assert_eq!(codes.redeem(&sloppy), Redeemed::Right);
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_codes_have_to_wait_after_some_of_them_and_keep_the_right_one_out_never() {
        let codes = Codes::default();
        let code = codes.make().unwrap();
        for _ in 0..MAX_GUESSES {
            assert_eq!(codes.redeem("wrong"), Redeemed::Wrong);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let wait = GUESS_WINDOW.saturating_sub(Duration::from_secs(MAX_GUESSES as u64));
        assert_eq!(codes.redeem("wrong"), Redeemed::TooMany(wait));
        assert_eq!(codes.redeem(code.code.expose()), Redeemed::Right);
        assert_eq!(
            codes.redeem(code.code.expose()),
            Redeemed::TooMany(wait),
            "it is used up"
        );
        tokio::time::advance(wait).await;
        assert_eq!(codes.redeem("wrong"), Redeemed::Wrong);
    }

    #[test]
    fn letters_that_look_alike_are_one() {
        assert_eq!(meant(" o0-iIlL1 \n"), "0011111");
    }

    #[test]
    fn no_code_is_in_debug() {
        let codes = Codes::default();
        let code = codes.make().unwrap();
        let shown = format!("{codes:?} {code:?}");
        assert!(!shown.contains(code.code.expose()), "{shown}");
    }
}
