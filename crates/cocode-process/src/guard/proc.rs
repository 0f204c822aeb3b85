//! What the guard reads in `/proc`, on stack buffers only: its children, its memory map, the
//! place of its command line.

use std::ffi::CStr;

use libc::{c_int, pid_t};

use super::system;

/// A child of the guard, which may be an adopted one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Child {
    pub(super) pid: pid_t,
    pub(super) group: pid_t,
}

/// Visits all children of the calling process. Without a readable `/proc` there are none to see.
pub(super) fn for_each_child(mut visit: impl FnMut(Child)) {
    let Some(directory) = system::open_directory(c"/proc") else {
        return;
    };
    let own = system::getpid();
    let mut entries = system::DirectoryBuffer::new();
    loop {
        let filled = system::read_directory(directory, &mut entries);
        if filled.is_empty() {
            break;
        }
        for_each_entry(filled, |name| {
            if let Some(pid) = parse_pid(name)
                && let Some((parent, group)) = read_relations(directory, name)
                && parent == own
            {
                visit(Child { pid, group });
            }
        });
    }
    system::close(directory);
}

fn read_relations(directory: c_int, name: &[u8]) -> Option<(pid_t, pid_t)> {
    let mut path = [0; 32];
    let (head, tail) = path.split_at_mut_checked(name.len())?;
    head.copy_from_slice(name);
    // The zeros behind it end the path.
    tail.get_mut(..5)?.copy_from_slice(b"/stat");
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    let file = system::open_file_in(directory, path)?;
    let mut buffer = [0; 512];
    let filled = system::read(file, &mut buffer);
    system::close(file);
    Some((
        stat_number(filled, STAT_PARENT)?,
        stat_number(filled, STAT_GROUP)?,
    ))
}

/// Walks the records of `getdents64`: inode (8 bytes), offset (8), record length (2), type (1),
/// name with a zero at its end.
fn for_each_entry(mut records: &[u8], mut visit: impl FnMut(&[u8])) {
    while let Some(length) = records.get(16..18).and_then(|bytes| bytes.try_into().ok()) {
        let length = usize::from(u16::from_ne_bytes(length));
        let Some((record, rest)) = records.split_at_checked(length.max(19)) else {
            return;
        };
        let name = record.get(19..).unwrap_or_default();
        visit(name.split(|byte| *byte == 0).next().unwrap_or_default());
        records = rest;
    }
}

fn parse_pid(name: &[u8]) -> Option<pid_t> {
    parse_number(name, 10)?.try_into().ok()
}

/// Positions in `/proc/PID/stat`, counted from the field after the command name.
const STAT_PARENT: usize = 1;
const STAT_GROUP: usize = 2;
const STAT_ARGUMENTS_START: usize = 45;
const STAT_ARGUMENTS_END: usize = 46;

fn stat_number<T: TryFrom<usize>>(stat: &[u8], position: usize) -> Option<T> {
    // The command name may hold spaces and parentheses; nothing after it does.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = stat.get(name_end.checked_add(2)?..)?;
    let field = fields.split(|byte| *byte == b' ').nth(position)?;
    parse_number(field, 10)?.try_into().ok()
}

/// Where the own command line lies in memory, as start and end.
pub(super) fn own_arguments() -> Option<(usize, usize)> {
    let file = system::open_file(c"/proc/self/stat")?;
    let mut buffer = [0; 1024];
    let filled = system::read(file, &mut buffer);
    system::close(file);
    Some((
        stat_number(filled, STAT_ARGUMENTS_START)?,
        stat_number(filled, STAT_ARGUMENTS_END)?,
    ))
}

/// Overwrites the own command line.
pub(super) fn replace_arguments((start, end): (usize, usize), name: &CStr) {
    let zeros = [0; 256];
    let mut rest = name.to_bytes();
    let mut position = start;
    while position < end {
        let room = end.saturating_sub(position);
        let source = if rest.is_empty() { &zeros[..] } else { rest };
        let piece = source.get(..room).unwrap_or(source);
        if !system::write_at(piece, position) {
            break;
        }
        position = position.saturating_add(piece.len());
        rest = &[];
    }
}

/// Visits the own mappings that are private, writable and not backed by a file: heap, stacks, and
/// the zeroed data of libraries.
pub(super) fn for_each_anonymous_mapping(mut visit: impl FnMut(usize, usize)) {
    let Some(file) = system::open_file(c"/proc/self/maps") else {
        return;
    };
    // Longer than any line, which ends in a path.
    let mut buffer = [0; 8192];
    let mut kept = 0_usize;
    while let Some(room) = buffer.get_mut(kept..) {
        let length = system::read(file, room).len();
        if length == 0 {
            break;
        }
        let filled = buffer
            .get(..kept.saturating_add(length))
            .unwrap_or_default();
        let complete = filled
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let (lines, rest) = filled.split_at_checked(complete).unwrap_or((filled, &[]));
        for line in lines.split(|byte| *byte == b'\n') {
            if let Some((start, end)) = parse_anonymous_mapping(line) {
                visit(start, end);
            }
        }
        kept = rest.len();
        buffer.copy_within(complete..complete.saturating_add(kept), 0);
    }
    system::close(file);
}

/// Reads `start-end permissions offset device inode [name]`.
fn parse_anonymous_mapping(line: &[u8]) -> Option<(usize, usize)> {
    let mut fields = line
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty());
    let mut range = fields.next()?.split(|byte| *byte == b'-');
    let start = parse_number(range.next()?, 16)?;
    let end = parse_number(range.next()?, 16)?;
    let permissions = fields.next()?;
    let inode = fields.nth(2)?;
    let name = fields.next().unwrap_or_default();
    let writable = permissions.get(1) == Some(&b'w') && permissions.get(3) == Some(&b'p');
    // Other bracketed names belong to the kernel.
    let ordinary =
        name.is_empty() || name == b"[heap]" || name == b"[stack]" || name.starts_with(b"[anon:");
    (writable && inode == b"0" && ordinary && start < end).then_some((start, end))
}

fn parse_number(digits: &[u8], radix: u32) -> Option<usize> {
    let mut number = 0_usize;
    for digit in digits {
        let digit = char::from(*digit).to_digit(radix)?;
        number = number
            .checked_mul(radix as usize)?
            .checked_add(digit as usize)?;
    }
    (!digits.is_empty()).then_some(number)
}

#[cfg(test)]
#[path = "proc_tests.rs"]
mod tests;
