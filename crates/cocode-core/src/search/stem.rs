//! Takes the endings off English words, so that `searches`, `searching` and `searched` are one.
//!
//! Porter's algorithm of 1980: five steps, each of which takes the longest ending that it knows off
//! a word whose rest is long enough. Words of other languages lose endings as well, but the same
//! ones wherever they stand, and that is all that counts here.

/// Shorter words have no endings to lose.
const SHORTEST: usize = 3;

/// An ending, and what stands in its place.
type Ending = (&'static str, &'static str);

const STEP_2: &[Ending] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("abli", "able"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

const STEP_3: &[Ending] = &[
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const STEP_4: &[&str] = &[
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou",
    "ism", "ate", "iti", "ous", "ive", "ize",
];

/// Words that would become others: `news` are not `new`.
const WHOLE: [&str; 3] = ["news", "canvas", "atlas"];

/// Takes the endings off a word of small letters from `a` to `z`. Anything else stays as it is.
pub(super) fn stem(word: &mut String) {
    let is_english = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if word.len() < SHORTEST || !is_english || WHOLE.contains(&word.as_str()) {
        return;
    }
    plural(word);
    past_and_progress(word);
    if stem_of(word, "y").is_some_and(has_vowel) {
        replace(word, 1, "i");
    }
    rewrite(word, STEP_2);
    rewrite(word, STEP_3);
    last_ending(word);
    tidy(word);
}

/// Step 1a. Unlike Porter, it leaves `status`, `dns` and `gas` alone, which are no plurals.
fn plural(word: &mut String) {
    if word.ends_with("sses") || word.ends_with("ies") {
        replace(word, 2, "");
    } else if let Some(rest) = stem_of(word, "s")
        && !rest.ends_with(['s', 'u'])
        && has_vowel(rest.get(..rest.len() - 1).unwrap_or_default())
    {
        replace(word, 1, "");
    }
}

/// Step 1b.
fn past_and_progress(word: &mut String) {
    if let Some(rest) = stem_of(word, "eed") {
        if measure(rest) > 0 {
            replace(word, 1, "");
        }
        return;
    }
    let ending = ["ed", "ing"]
        .into_iter()
        .find(|ending| stem_of(word, ending).is_some_and(has_vowel));
    let Some(ending) = ending else {
        return;
    };
    replace(word, ending.len(), "");
    let is_cut = ["at", "bl", "iz"].iter().any(|end| word.ends_with(end));
    if is_cut {
        word.push('e');
    } else if ends_double(word) && !word.ends_with(['l', 's', 'z']) {
        replace(word, 1, "");
    } else if measure(word) == 1 && ends_short(word) {
        word.push('e');
    }
}

/// Steps 2 and 3.
fn rewrite(word: &mut String, endings: &[Ending]) {
    let found = endings.iter().find(|(ending, _)| word.ends_with(ending));
    if let Some((ending, instead)) = found
        && stem_of(word, ending).is_some_and(|rest| measure(rest) > 0)
    {
        replace(word, ending.len(), instead);
    }
}

/// Step 4.
fn last_ending(word: &mut String) {
    let known = STEP_4.iter().filter(|ending| word.ends_with(**ending));
    let Some(ending) = known.max_by_key(|ending| ending.len()) else {
        return;
    };
    let Some(rest) = stem_of(word, ending) else {
        return;
    };
    let fits = *ending != "ion" || rest.ends_with(['s', 't']);
    if fits && measure(rest) > 1 {
        replace(word, ending.len(), "");
    }
}

/// Step 5.
fn tidy(word: &mut String) {
    if let Some(rest) = stem_of(word, "e") {
        let many = measure(rest);
        if many > 1 || (many == 1 && !ends_short(rest)) {
            replace(word, 1, "");
        }
    }
    if word.ends_with("ll") && measure(word) > 1 {
        replace(word, 1, "");
    }
}

fn stem_of<'a>(word: &'a str, ending: &str) -> Option<&'a str> {
    word.strip_suffix(ending)
}

fn replace(word: &mut String, n_bytes: usize, instead: &str) {
    word.truncate(word.len().saturating_sub(n_bytes));
    word.push_str(instead);
}

/// Whether each letter is a vowel. A `y` is one after a consonant.
fn vowels(word: &str) -> impl Iterator<Item = bool> {
    let mut was_vowel = true;
    word.bytes().map(move |byte| {
        let is_vowel = match byte {
            b'a' | b'e' | b'i' | b'o' | b'u' => true,
            b'y' => !was_vowel,
            _ => false,
        };
        was_vowel = is_vowel;
        is_vowel
    })
}

fn has_vowel(word: &str) -> bool {
    vowels(word).any(|is_vowel| is_vowel)
}

/// How often consonants follow vowels: what Porter calls the measure of a word.
fn measure(word: &str) -> usize {
    let mut was_vowel = false;
    let mut count = 0;
    for is_vowel in vowels(word) {
        count += usize::from(was_vowel && !is_vowel);
        was_vowel = is_vowel;
    }
    count
}

fn ends_double(word: &str) -> bool {
    let mut last = word.bytes().rev();
    let (one, other) = (last.next(), last.next());
    one == other && vowels(word).last() == Some(false)
}

/// Whether a word ends with consonant, vowel, consonant, the last of them none of `w`, `x`, `y`.
fn ends_short(word: &str) -> bool {
    let kinds: Vec<bool> = vowels(word).collect();
    kinds.ends_with(&[false, true, false]) && !word.ends_with(['w', 'x', 'y'])
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[track_caller]
    fn check(words: &str, expected: &str) {
        let stems = words.split(' ').map(|word| {
            let mut word = word.to_owned();
            stem(&mut word);
            word
        });
        assert_eq!(stems.collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn forms_of_a_word_are_one() {
        check(
            "search searches searching searched",
            "search search search search",
        );
        check("query queries", "queri queri");
        check("create creates creating created", "creat creat creat creat");
        check("delete deleting deletion", "delet delet delet");
        check("run running", "run run");
        check("file files filing", "file file file");
        check("analyze analyzing analyzed", "analyz analyz analyz");
        check("navigate navigation", "navig navig");
        check("relational conditional", "relat condit");
        check("hopefulness goodness", "hope good");
        check("agreed feed", "agre feed");
        check("falling hissing fizzed", "fall hiss fizz");
        check("controlling", "control");
        check("gaps kiwis pages", "gap kiwi page");
    }

    #[test]
    fn what_is_short_or_no_english_letters_stays() {
        check("is db 24h über 新闻 mp3s", "is db 24h über 新闻 mp3s");
        check("sky by", "sky by");
        check("news status dns gas css", "news status dns gas css");
    }

    #[test]
    fn every_step_shortens_no_word_to_nothing() {
        for word in [
            "sses", "ies", "ing", "eed", "ion", "ness", "ational", "sss", "yyy",
        ] {
            let mut stemmed = word.to_owned();
            stem(&mut stemmed);
            assert!(!stemmed.is_empty(), "{word}");
        }
    }
}
