//! Cuts texts and identifiers into the words that are compared.
//!
//! A word is a run of letters, of digits, or of both (`mp3`), in small letters, without accents and
//! English endings. `readFile`, `read_file` and `Read files` are the same two words. Scripts that do
//! not put spaces between words are cut into pairs of neighboring characters, which is how they are
//! searched everywhere; katakana is kept in one piece, as it spells foreign words.

use super::stem::stem;

/// Longer words are names of nothing: encoded data, for example.
const MAX_WORD_BYTES: usize = 48;
/// Letters beside digits that are a word by themselves.
const MIN_PART_LETTERS: usize = 3;

/// What a character is, for where words end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    /// Of a script without spaces.
    Dense,
    Katakana,
    /// Belongs to no word.
    Between,
}

/// Hands over each word of a text, in order. What is handed over is good until the next one.
pub(super) fn words(text: &str, mut take: impl FnMut(&str)) {
    let mut run = Run::default();
    let mut characters = text.chars().peekable();
    let mut before = Class::Between;
    while let Some(character) = characters.next() {
        let class = class(character);
        let next = characters
            .peek()
            .map_or(Class::Between, |next| self::class(*next));
        if ends_word(before, class, next) {
            run.finish(&mut take);
        }
        match class {
            Class::Between => {}
            Class::Dense => run.dense.push(character),
            _ => run.push(character, class == Class::Digit),
        }
        before = class;
    }
    run.finish(&mut take);
}

/// Whether a word ends between a character and the one before it.
fn ends_word(before: Class, class: Class, next: Class) -> bool {
    match (before, class) {
        (Class::Lower | Class::Digit, Class::Upper) => true,
        // The last capital of `HTMLParser` begins the next word.
        (Class::Upper, Class::Upper) => next == Class::Lower,
        (Class::Upper | Class::Lower | Class::Digit, Class::Lower | Class::Digit) => false,
        (one, other) => one != other,
    }
}

fn class(character: char) -> Class {
    match character {
        'a'..='z' => Class::Lower,
        'A'..='Z' => Class::Upper,
        '0'..='9' => Class::Digit,
        '\0'..='\x7f' => Class::Between,
        '\u{30a1}'..='\u{30fa}' | '\u{30fc}' => Class::Katakana,
        // Thai, Lao, Burmese, Khmer; kana; Han; Hangul.
        '\u{0e00}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1100}'..='\u{11ff}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3041}'..='\u{3096}'
        | '\u{3005}'..='\u{3007}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Class::Dense,
        other if other.is_uppercase() => Class::Upper,
        other if other.is_alphabetic() => Class::Lower,
        other if other.is_numeric() => Class::Digit,
        _ => Class::Between,
    }
}

/// The word that is being read.
#[derive(Default)]
struct Run {
    word: String,
    has_letters: bool,
    has_digits: bool,
    dense: Vec<char>,
    part: String,
}

impl Run {
    fn push(&mut self, character: char, is_digit: bool) {
        self.has_digits |= is_digit;
        self.has_letters |= !is_digit;
        if character.is_ascii() {
            self.word.push(character.to_ascii_lowercase());
        } else {
            for small in character.to_lowercase() {
                push_plain(&mut self.word, small);
            }
        }
    }

    fn finish(&mut self, take: &mut impl FnMut(&str)) {
        if !self.dense.is_empty() {
            self.finish_dense(take);
        }
        if self.word.is_empty() {
            return;
        }
        if self.word.len() <= MAX_WORD_BYTES {
            if self.has_letters && self.has_digits {
                take(&self.word);
                self.finish_parts(take);
            } else {
                stem(&mut self.word);
                take(&self.word);
            }
        }
        self.word.clear();
        (self.has_letters, self.has_digits) = (false, false);
    }

    /// The letters of a word that has digits as well.
    fn finish_parts(&mut self, take: &mut impl FnMut(&str)) {
        for letters in self.word.split(|character: char| character.is_numeric()) {
            if letters.chars().count() >= MIN_PART_LETTERS {
                self.part.clear();
                self.part.push_str(letters);
                stem(&mut self.part);
                take(&self.part);
            }
        }
    }

    fn finish_dense(&mut self, take: &mut impl FnMut(&str)) {
        if let [alone] = *self.dense {
            self.part.clear();
            self.part.push(alone);
            take(&self.part);
        }
        for pair in self.dense.windows(2) {
            self.part.clear();
            self.part.extend(pair);
            take(&self.part);
        }
        self.dense.clear();
    }
}

/// Adds a small letter without its accent.
fn push_plain(word: &mut String, letter: char) {
    let plain = match letter {
        'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
        'æ' => "ae",
        'ç' | 'ć' | 'č' | 'ĉ' | 'ċ' => "c",
        'ď' | 'đ' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ì'..='ï' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ĺ' | 'ļ' | 'ľ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => "o",
        'œ' => "oe",
        'ŕ' | 'ř' => "r",
        'ś' | 'ş' | 'š' | 'ș' => "s",
        'ß' => "ss",
        'ţ' | 'ť' | 'ț' => "t",
        'ù'..='ü' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'ý' | 'ÿ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        // Accents that stand by themselves.
        '\u{300}'..='\u{36f}' => "",
        other => {
            word.push(other);
            return;
        }
    };
    word.push_str(plain);
}

/// All words of a text.
pub(super) fn all_words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    words(text, |word| all.push(word.to_owned()));
    all
}

#[cfg(test)]
mod tests {
    use super::all_words;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(all_words(text).join(" "), expected, "{text}");
    }

    #[test]
    fn identifiers_are_cut_where_people_see_words() {
        check("read_file", "read file");
        check(
            "readFile ReadFile read-file READ_FILE",
            "read file read file read file read file",
        );
        check(
            "HTMLParser parseHTML getUrls",
            "html parser pars html get url",
        );
        check("mcp__files__read", "mcp file read");
    }

    #[test]
    fn digits_stay_with_their_letters() {
        check("mp3 base64 s3 24h", "mp3 base64 base s3 24h");
        check("top 10", "top 10");
        check("v2Api", "v2 api");
    }

    #[test]
    fn accents_and_cases_do_not_count() {
        check("Überprüfung ÉTAT straße", "uberprufung etat strass");
        check("Ёлка ΑΒΓ", "ёлка αβγ");
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_pairs() {
        check("获取天气", "获取 取天 天气");
        check("吃 web搜索", "吃 web 搜索");
        check("ファイルを読む", "ファイル を読 読む");
        check("날씨 조회", "날씨 조회");
    }

    #[test]
    fn what_is_no_word_is_left_out() {
        check("⚠️ — … \u{0}", "");
        check(&format!("a {} b", "x".repeat(49)), "a b");
    }
}
