//! Saved prompts: what their files may say, and what becomes of arguments.

use std::collections::BTreeMap;
use std::path::Path;

use super::{PromptError, SavedArgument, SavedPrompt, SavedPrompts, file};

fn parsed(text: &str) -> SavedPrompt {
    file::parse("p", text).unwrap()
}

fn with(prompt: &SavedPrompt, given: &[(&str, &str)]) -> Result<String, PromptError> {
    let given: BTreeMap<String, String> = given
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    prompt.expand(&given)
}

fn required(name: &str) -> SavedArgument {
    SavedArgument {
        name: name.into(),
        description: None,
        is_required: true,
    }
}

#[test]
fn what_a_file_says_about_itself_is_no_part_of_the_text() {
    let prompt = parsed(
        "---\ndescription: \"Reviews a file\"\nmodel: ignored\narguments: [file, style?]\n---\n\n\
         Review {{file}} in the style of {{ style }}.\n",
    );
    assert_eq!(prompt.description.as_deref(), Some("Reviews a file"));
    let style = SavedArgument {
        is_required: false,
        ..required("style")
    };
    assert_eq!(prompt.arguments, [required("file"), style]);
    assert_eq!(
        with(&prompt, &[("file", "a.rs"), ("style", "{{file}}")]).unwrap(),
        "Review a.rs in the style of {{file}}."
    );
    assert_eq!(
        with(&prompt, &[("file", "$1")]).unwrap(),
        "Review $1 in the style of ."
    );
}

#[test]
fn arguments_may_be_a_list_with_descriptions() {
    let prompt = parsed(
        "---\narguments:\n  - file: What to read\n  - name: depth\n    description: How deep\n    \
         required: false\n---\n$1 $2 $ARGUMENTS",
    );
    assert_eq!(
        prompt.arguments[0].description.as_deref(),
        Some("What to read")
    );
    assert_eq!(prompt.arguments[1].description.as_deref(), Some("How deep"));
    assert!(!prompt.arguments[1].is_required);
    assert_eq!(with(&prompt, &[("file", "x")]).unwrap(), "x  x");
}

#[test]
fn arguments_that_are_only_in_the_text_are_found_there() {
    let prompt = parsed("Fix $ARGUMENTS, for $$5 or {x} or $HOME or $10");
    assert_eq!(prompt.arguments.len(), 1);
    assert_eq!(
        with(&prompt, &[("arguments", "it")]).unwrap(),
        "Fix it, for $5 or {x} or $HOME or $10"
    );
    let prompt = parsed("$2 before $1 and {{name}}");
    let names: Vec<&str> = prompt
        .arguments
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["1", "2", "name"]);
    assert_eq!(
        with(&prompt, &[("1", "a"), ("2", "b"), ("name", "c")]).unwrap(),
        "b before a and c"
    );
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let prompt = parsed("{{file}}");
    assert_eq!(
        with(&prompt, &[]),
        Err(PromptError::Missing {
            prompt: "p".into(),
            argument: "file".into()
        })
    );
    let error = with(&prompt, &[("fil", "x")]).unwrap_err().to_string();
    assert_eq!(error, "the prompt `p` has no argument `fil`: it has `file`");
    let long = "x".repeat(600 * 1024);
    let twice = parsed("{{a}}{{a}}");
    assert!(matches!(
        with(&twice, &[("a", &long)]),
        Err(PromptError::TooLong { .. })
    ));
}

#[test]
fn broken_files_say_what_is_wrong() {
    for (text, told) in [
        ("---\ndescription: x\n", "a line `---` is missing"),
        ("---\nnothing\n---\n", "no `key: value`"),
        ("---\narguments: [a b!]\n---\n", "`b!` is no name"),
        ("---\narguments: [a]\n---\n{{b}}", "`{{b}}` is none of"),
        ("---\narguments: [a]\n---\n$2", "`$2` is none of"),
        ("---\narguments: [a, a]\n---\n", "there twice"),
    ] {
        let error = file::parse("p", text).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
}

fn write(directory: &Path, name: &str, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(directory).unwrap();
    std::fs::write(directory.join(name), text).unwrap();
}

#[test]
fn the_first_directory_decides_and_broken_files_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (root.path().join("a"), root.path().join("b"));
    write(&first, "same.md", "first");
    write(&first, "binary.md", [0xff, 0xfe]);
    write(&first, "large.md", "x".repeat(65 * 1024));
    write(&first, "notes.txt", "no prompt");
    std::fs::create_dir(first.join("folder.md")).unwrap();
    write(&second, "same.md", "second");
    write(&second, "other.md", "other");
    let missing = root.path().join("missing");
    let prompts = SavedPrompts::new([first, missing, second]);
    let read = prompts.read();
    let names: Vec<&str> = read.iter().map(|prompt| prompt.name.as_str()).collect();
    assert_eq!(names, ["other", "same"]);
    let same = prompts.find("same").unwrap();
    assert_eq!(with(&same, &[]).unwrap(), "first");
    assert_eq!(
        prompts.find("binary"),
        Err(PromptError::Unknown("binary".into()))
    );
}
