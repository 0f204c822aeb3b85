//! What the person mentions: `@path` and `@server:uri`. The text stays as it was typed; what is
//! mentioned is read, and goes to the model beside it.

use std::path::{Path, PathBuf};

use cocode_agent::{Block, Company, Notice, text_of};
use cocode_client::{RequestOptions, ResourceContents, ResourceReference};

use super::files;
use super::talk::Talk;

/// Mentions of one text.
const MAX_MENTIONS: usize = 20;

/// Bytes of one file or resource that the model is shown.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// Entries of a directory that the model is shown.
const MAX_ENTRIES: usize = 500;

const FILE: &str = "<file path=";
const DIRECTORY: &str = "<directory path=";
const RESOURCE: &str = "<resource server=";

/// What stands around a mention, and belongs to the sentence.
const OPENING: &[char] = &['(', '[', '{', '"', '\'', '`', '<'];
const CLOSING: &[char] = &[
    ')', ']', '}', '"', '\'', '`', '>', ',', ';', '.', ':', '!', '?',
];

/// Whether this was read for the model, rather than typed.
pub(super) fn is_attachment(block: &Block) -> bool {
    let text = block.as_text().unwrap_or_default();
    [FILE, DIRECTORY, RESOURCE]
        .iter()
        .any(|beginning| text.starts_with(beginning))
}

pub(super) fn is_image(mime_type: &str) -> bool {
    mime_type.starts_with("image/")
}

pub(super) fn image(media_type: String, data: String) -> Block {
    Block::Image { media_type, data }
}

impl Talk {
    /// What was typed, with what it mentions.
    pub(super) async fn with_mentions(&self, said: Vec<Block>, company: &Company) -> Vec<Block> {
        let mentions = mentions(&text_of(&said));
        let warn = |text: String| company.listener.hear(&Notice::Warning(text));
        let mut blocks = said;
        if mentions.len() > MAX_MENTIONS {
            warn(format!("only the first {MAX_MENTIONS} mentions are read"));
        }
        let directory = self.settings().cwd;
        for mention in mentions.into_iter().take(MAX_MENTIONS) {
            let read = tokio::select! {
                read = self.read_mention(&mention, &directory) => read,
                () = company.interrupt.cancelled() => return blocks,
            };
            match read {
                Ok(read) => blocks.extend(read),
                Err(why) => warn(format!("@{mention} stays as it is typed: {why}")),
            }
        }
        blocks
    }

    async fn read_mention(&self, mention: &str, directory: &Path) -> Result<Vec<Block>, String> {
        if let Some(reference) = self.resource(mention) {
            return self.read_resource(&reference).await;
        }
        let (mention, directory) = (mention.to_owned(), directory.to_owned());
        let read = tokio::task::spawn_blocking(move || read_path(&mention, &directory));
        match read.await {
            Ok(read) => read,
            Err(_ended) => Err("it could not be read".to_owned()),
        }
    }

    /// The resource that is meant, if it is one of a server that there is.
    fn resource(&self, mention: &str) -> Option<ResourceReference> {
        let reference = ResourceReference::parse(mention)?;
        let servers = self.manager.status();
        let is_known = servers.iter().any(|server| server.name == reference.server);
        is_known.then_some(reference)
    }

    async fn read_resource(&self, reference: &ResourceReference) -> Result<Vec<Block>, String> {
        let read = self
            .manager
            .read(reference, RequestOptions::default())
            .await;
        let read = read.map_err(|error| cocode_wire::chain(&error))?;
        let mut blocks = Vec::new();
        for contents in read.contents() {
            blocks.push(resource_block(reference, contents)?);
        }
        if blocks.is_empty() {
            return Err("the server gave nothing".to_owned());
        }
        Ok(blocks)
    }
}

fn resource_block(
    reference: &ResourceReference,
    contents: ResourceContents,
) -> Result<Block, String> {
    let ResourceContents {
        uri,
        mime_type,
        text,
        blob,
    } = contents;
    let kind = mime_type.unwrap_or_default();
    match (text, blob) {
        (Some(text), _) => {
            let (text, note) = cut(&text, text.len() as u64);
            let server = &reference.server;
            let text = format!("{RESOURCE}\"{server}\" uri=\"{uri}\">\n{text}\n</resource>{note}");
            Ok(Block::text(text))
        }
        (None, Some(data)) if is_image(&kind) => Ok(image(kind, data)),
        (None, Some(_)) => Err(format!("it is neither text nor an image, but `{kind}`")),
        (None, None) => Err("the server gave nothing".to_owned()),
    }
}

/// Every mention in a text, once, without its sign. `@"a path"` may have blanks in it.
fn mentions(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut end = 0;
    for (at, _) in text
        .match_indices('@')
        .filter(|(at, _)| is_beginning(text, *at))
    {
        let Some(rest) = text.get(at + 1..).filter(|_| at >= end) else {
            continue;
        };
        let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let mention = if let Some((quoted, _)) = quoted {
            end = at + quoted.len() + 3;
            quoted
        } else {
            let word = rest.split(char::is_whitespace).next().unwrap_or_default();
            end = at + 1 + word.len();
            word.trim_end_matches(CLOSING)
        };
        let is_new = !found.iter().any(|known| known == mention);
        if is_new && !mention.is_empty() && !mention.starts_with('@') {
            found.push(mention.to_owned());
        }
    }
    found
}

/// Whether a word begins here.
fn is_beginning(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    before.is_none_or(|before| before.is_whitespace() || OPENING.contains(&before))
}

/// The file or directory, if it lies below the directory that is worked in.
fn read_path(mention: &str, directory: &Path) -> Result<Vec<Block>, String> {
    let path = directory.join(mention);
    let whole = path
        .canonicalize()
        .map_err(|_error| "there is no such file here, and no such server".to_owned())?;
    let root = directory
        .canonicalize()
        .map_err(|error| error.to_string())?;
    if !whole.starts_with(&root) {
        return Err(format!("it is outside of {}", root.display()));
    }
    let shown = whole.strip_prefix(&root).unwrap_or(&whole).to_owned();
    let facts = std::fs::metadata(&whole).map_err(|error| error.to_string())?;
    if facts.is_dir() {
        return Ok(vec![listing(&whole, &shown)]);
    }
    if !facts.is_file() {
        return Err("it is neither a file nor a directory".to_owned());
    }
    if is_picture(&whole) {
        let image = crate::agent::exec::image(&whole).map_err(|error| error.message)?;
        return Ok(vec![image]);
    }
    text_of_file(&whole, &shown, facts.len()).map(|block| vec![block])
}

/// Whether its name says that it is an image that models take.
fn is_picture(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        ["png", "jpg", "jpeg", "gif", "webp"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    })
}

fn text_of_file(path: &Path, shown: &Path, size: u64) -> Result<Block, String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_TEXT_BYTES).unwrap_or(u64::MAX);
    std::fs::File::open(path)
        .and_then(|file| file.take(most + 4).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.contains(&0) {
        return Err("it is no text".to_owned());
    }
    let text = String::from_utf8_lossy(&bytes);
    let (text, note) = cut(&text, size);
    let shown = shown.display();
    Ok(Block::text(format!(
        "{FILE}\"{shown}\">\n{text}\n</file>{note}"
    )))
}

/// As much of a text as the model is shown, and what it is told of the rest.
fn cut(text: &str, size: u64) -> (&str, String) {
    if text.len() <= MAX_TEXT_BYTES {
        return (text, String::new());
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    let (text, _rest) = text.split_at(end);
    let note = format!("\n(This is the beginning: {end} of {size} bytes.)");
    (text, note)
}

fn listing(path: &Path, shown: &Path) -> Block {
    let entries: Vec<PathBuf> = files::below(path, Some(1), MAX_ENTRIES + 1);
    let mut text = String::new();
    for entry in entries.iter().take(MAX_ENTRIES) {
        text.push_str(&entry.to_string_lossy());
        text.push('\n');
    }
    if entries.len() > MAX_ENTRIES {
        text.push_str("(and more)\n");
    }
    let shown = if shown.as_os_str().is_empty() {
        ".".to_owned()
    } else {
        shown.display().to_string()
    };
    Block::text(format!("{DIRECTORY}\"{shown}\">\n{text}</directory>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_words_that_begin_with_the_sign() {
        let text = "@one see (@two/three.rs), mail a@b.example, @\"a b.txt\" and @docs:x://y. @one";
        assert_eq!(
            mentions(text),
            ["one", "two/three.rs", "a b.txt", "docs:x://y"]
        );
        assert_eq!(mentions("a@b @@ @"), Vec::<String>::new());
        assert_eq!(mentions("a@b @c"), ["c"]);
    }

    #[test]
    fn files_below_the_directory_are_read_and_others_are_not() {
        let place = tempfile::tempdir().unwrap();
        let here = place.path().join("here");
        std::fs::create_dir_all(here.join("sub")).unwrap();
        std::fs::write(place.path().join("secret"), "no").unwrap();
        std::fs::write(here.join("a.txt"), "hello").unwrap();
        std::fs::write(here.join("b.bin"), [1, 0, 2]).unwrap();
        std::os::unix::fs::symlink(place.path().join("secret"), here.join("link")).unwrap();
        let text = |mention: &str| {
            let blocks = read_path(mention, &here)?;
            Ok::<String, String>(text_of(&blocks))
        };
        assert_eq!(
            text("a.txt").unwrap(),
            "<file path=\"a.txt\">\nhello\n</file>"
        );
        assert_eq!(text("sub/../a.txt").unwrap(), text("a.txt").unwrap());
        let listed = text(".").unwrap();
        assert_eq!(
            listed,
            "<directory path=\".\">\na.txt\nb.bin\nlink\nsub/\n</directory>"
        );
        for (mention, why) in [
            ("../secret", "outside"),
            ("link", "outside"),
            ("b.bin", "no text"),
            ("none", "no such file"),
        ] {
            let error = text(mention).unwrap_err();
            assert!(error.contains(why), "{mention}: {error}");
        }
        assert!(read_path("a.txt", &here).unwrap().iter().all(is_attachment));
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        let text = "ä".repeat(MAX_TEXT_BYTES);
        let (shown, note) = cut(&text, 2 * MAX_TEXT_BYTES as u64);
        assert_eq!(shown.len(), MAX_TEXT_BYTES);
        assert!(note.contains("262144 of 524288 bytes"), "{note}");
    }
}
