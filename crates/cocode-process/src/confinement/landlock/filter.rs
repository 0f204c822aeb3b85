//! Compiles the classification of system calls into a seccomp filter.
//!
//! Hand-written because one filter needs two error numbers and tests on arguments, which the filter crates do not combine.
#![expect(
    unsafe_code,
    reason = "a system call that the standard library does not offer"
)]

use std::collections::BTreeSet;
use std::io;
use std::mem::offset_of;
use std::sync::OnceLock;

use libc::{c_ulong, seccomp_data, sock_filter};

use super::syscalls::{Access, ArgumentTest, groups};

/// `AUDIT_ARCH` of the own processor. Numbers of calls mean something only for the processor that they are of.
#[cfg(target_arch = "x86_64")]
const OWN_PROCESSOR: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const OWN_PROCESSOR: u32 = 0xC000_00B7;

// Instructions of classic BPF.
const LOAD_WORD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// A compiled filter.
#[derive(Clone, Copy)]
pub(super) struct SyscallFilter(&'static [sock_filter]);

impl std::fmt::Debug for SyscallFilter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SyscallFilter({} instructions)", self.0.len())
    }
}

impl SyscallFilter {
    /// The filter for one kind of sandbox, compiled at its first use.
    pub(super) fn new(network: bool, signals_scoped: bool) -> Self {
        static COMPILED: [[OnceLock<Vec<sock_filter>>; 2]; 2] =
            [const { [const { OnceLock::new() }; 2] }; 2];
        let [unscoped, scoped] = if network { &COMPILED[1] } else { &COMPILED[0] };
        let compiled = if signals_scoped { scoped } else { unscoped };
        Self(compiled.get_or_init(|| compile(network, signals_scoped)))
    }

    /// Installs the filter in the calling process, which has `no_new_privs`. Async-signal-safe: one system call.
    pub(super) fn install(self) -> io::Result<()> {
        let program = libc::sock_fprog {
            // `compile` stays far below the 4,096 instructions that the kernel takes.
            len: u16::try_from(self.0.len()).unwrap_or(u16::MAX),
            filter: self.0.as_ptr().cast_mut(),
        };
        let mode = c_ulong::from(libc::SECCOMP_MODE_FILTER);
        let none: c_ulong = 0;
        // SAFETY: the kernel reads as many instructions as the program says, from a live array, and writes nothing.
        let answer =
            unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program, none, none) };
        if answer == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

fn compile(network: bool, signals_scoped: bool) -> Vec<sock_filter> {
    let absent = error(libc::ENOSYS);
    let mut program = vec![
        load(offset_of!(seccomp_data, arch)),
        jump(JUMP_IF_EQUAL, OWN_PROCESSOR, 1, 0),
        absent,
        load(offset_of!(seccomp_data, nr)),
    ];
    let mut known = BTreeSet::new();
    for group in groups(network, signals_scoped) {
        let block = match group.access {
            Access::Allowed => Vec::new(),
            Access::Refused => vec![error(libc::EPERM)],
            Access::Absent => vec![absent],
            Access::Checked(tests) => check(tests),
        };
        for call in group.calls {
            known.insert(*call);
            if !block.is_empty() {
                program.push(jump(JUMP_IF_EQUAL, *call, 0, length(&block)));
                program.extend_from_slice(&block);
            }
        }
    }
    // What is left is allowed, if it is known. This covers the x32 interface, too, whose numbers are large.
    let mut next = 0;
    for number in known {
        if number > next {
            program.push(jump(JUMP_IF_AT_LEAST, next, 0, 2));
            program.push(jump(JUMP_IF_AT_LEAST, number, 1, 0));
            program.push(absent);
        }
        next = number.saturating_add(1);
    }
    program.push(jump(JUMP_IF_AT_LEAST, next, 0, 1));
    program.push(absent);
    program.push(give(libc::SECCOMP_RET_ALLOW));
    program
}

/// Instructions that allow a call if all tests pass, and refuse it otherwise.
fn check(tests: &[ArgumentTest]) -> Vec<sock_filter> {
    let mut block = vec![give(libc::SECCOMP_RET_ALLOW), error(libc::EPERM)];
    for test in tests.iter().rev() {
        // Seen from the last instruction of a test, the refusal is the last of what follows.
        let refuse = length(&block).saturating_sub(1);
        let mut instructions = match *test {
            ArgumentTest::IsZero(argument) => {
                vec![low(argument), jump(JUMP_IF_EQUAL, 0, 0, refuse)]
            }
            ArgumentTest::IsNullPointer(argument) => vec![
                low(argument),
                jump(JUMP_IF_EQUAL, 0, 0, refuse.saturating_add(2)),
                high(argument),
                jump(JUMP_IF_EQUAL, 0, 0, refuse),
            ],
            ArgumentTest::LacksBits(argument, bits) => {
                vec![low(argument), jump(JUMP_IF_ANY_BIT, bits, refuse, 0)]
            }
            ArgumentTest::LacksBitsIf {
                flags: (flags, needed),
                argument,
                bits,
            } => vec![
                low(flags),
                jump(JUMP_IF_ANY_BIT, needed, 0, 2),
                low(argument),
                jump(JUMP_IF_ANY_BIT, bits, refuse, 0),
            ],
            ArgumentTest::IsOneOf(argument, mask, values) => {
                let mut left = length(values);
                let mut instructions = vec![low(argument), instruction(AND, mask, 0, 0)];
                for value in values {
                    left = left.saturating_sub(1);
                    let if_not = if left == 0 { refuse } else { 0 };
                    instructions.push(jump(JUMP_IF_EQUAL, *value, left, if_not));
                }
                instructions
            }
            ArgumentTest::IsNoneOf(argument, values) => {
                let mut left = length(values);
                let mut instructions = vec![low(argument)];
                for value in values {
                    left = left.saturating_sub(1);
                    let is_in = refuse.saturating_add(left);
                    instructions.push(jump(JUMP_IF_EQUAL, *value, is_in, 0));
                }
                instructions
            }
        };
        instructions.append(&mut block);
        block = instructions;
    }
    block
}

/// Offsets of jumps are bytes; blocks are a few instructions long.
fn length<T>(block: &[T]) -> u8 {
    u8::try_from(block.len()).unwrap_or(u8::MAX)
}

/// Loads the lower half of an argument; both processors are little-endian.
fn low(argument: u8) -> sock_filter {
    load(offset_of!(seccomp_data, args).saturating_add(usize::from(argument).saturating_mul(8)))
}

/// Loads the upper half of an argument.
fn high(argument: u8) -> sock_filter {
    let low = low(argument);
    instruction(LOAD_WORD, low.k.saturating_add(4), 0, 0)
}

fn load(offset: usize) -> sock_filter {
    instruction(LOAD_WORD, u32::try_from(offset).unwrap_or(u32::MAX), 0, 0)
}

/// Skips so many instructions if the comparison holds, and so many if it does not.
fn jump(comparison: u16, with: u32, if_so: u8, if_not: u8) -> sock_filter {
    instruction(comparison, with, if_so, if_not)
}

fn error(number: libc::c_int) -> sock_filter {
    give(libc::SECCOMP_RET_ERRNO | number.unsigned_abs())
}

fn give(answer: u32) -> sock_filter {
    instruction(RETURN, answer, 0, 0)
}

fn instruction(code: u16, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    sock_filter {
        code,
        jt: if_so,
        jf: if_not,
        k: value,
    }
}
