// SPDX-License-Identifier: GPL-2.0

//! Walks: from the registers of a program to the words of its stack.
//!
//! A walk takes a bounded number of steps for each word, and reads at most six words of memory for
//! it. A hostile program may have chosen the addresses, the memory at them, and the mappings; the
//! author of a hostile file may have chosen the rules.

use super::{
    End,
    Key,
    Kind,
    Machine,
    Place,
    Plain,
    Rule,
    Word, //
};

/// The registers of a program that a walk begins with.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// The address of the instruction that runs next.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer: `rbp`, `x29`.
    pub fp: u64,
    /// The register in which a function may keep its return address, if that is known: `x30`, the
    /// link register; `rdi` in glibc's `vfork()` for x86-64, as the child overwrites the stack.
    pub lr: Option<u64>,
}

/// An executable mapping.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// Its first address.
    pub begin: u64,
    /// The address behind it.
    pub end: u64,
    /// The place of its first byte.
    pub place: Place,
}

/// The program whose stack is walked.
pub trait Program {
    /// Its architecture.
    const MACHINE: Machine;

    /// The bits of a return address that are its address; the others authenticate it.
    fn code(&self) -> u64;

    /// The executable mapping that an address is in. Fails with [`End::Astray`] if it is in none,
    /// or [`End::Changing`].
    fn near(&mut self, address: u64) -> Result<Near, End>;

    /// Reads a word of its memory; `None` if it is not there.
    fn read(&mut self, address: u64) -> Option<u64>;

    /// The rule for an instruction; `None` if no rules were written for its file.
    fn rule(&mut self, place: Place) -> Option<Rule>;

    /// The same as [`Program::rule`], if that is a plain one. Of a key that [`Program::near`] has
    /// returned.
    #[inline(always)]
    fn plain(&mut self, _key: Key) -> Option<Plain> {
        None
    }

    /// Whether [`Program::load`] can be called.
    #[inline(always)]
    fn loads(&self) -> bool {
        true
    }

    /// The same as [`Program::read`], or 0 if the word is not there.
    #[inline(always)]
    fn load(&mut self, address: u64) -> u64 {
        self.read(address).unwrap_or(0)
    }

    /// Two words, likewise, the second one less than 4 KiB above the first one. The second one is 0
    /// if one of them is not there.
    #[inline(always)]
    fn load_two(&mut self, first: u64, second: u64) -> (u64, u64) {
        match self.read(first) {
            Some(word) => (word, self.load(second)),
            None => (0, 0),
        }
    }
}

/// Where the kernel puts the registers `fp`, `lr`, `sp` and `ip` on the stack when it calls a
/// signal handler: bytes from the stack pointer with which the handler returns.
struct SignalFrame {
    fp: u64,
    lr: u64,
    sp: u64,
    ip: u64,
}

impl SignalFrame {
    const fn of(machine: Machine) -> Self {
        match machine {
            // `uc_mcontext` is at byte 40 of `struct ucontext`
            // (include/uapi/asm-generic/ucontext.h), and a `struct sigcontext_64`
            // (arch/x86/include/uapi/asm/sigcontext.h).
            Machine::X86 => Self {
                fp: 40 + 80,
                lr: 40 + 64,
                sp: 40 + 120,
                ip: 40 + 128,
            },
            // Behind a `struct siginfo` of 128 bytes, `uc_mcontext` is at byte 176 of `struct
            // ucontext` (arch/arm64/include/uapi/asm/ucontext.h), and its registers are at byte 8
            // of `struct sigcontext` (arch/arm64/include/uapi/asm/sigcontext.h).
            Machine::Arm64 => Self {
                fp: 128 + 176 + 8 + 29 * 8,
                lr: 128 + 176 + 8 + 30 * 8,
                sp: 128 + 176 + 8 + 31 * 8,
                ip: 128 + 176 + 8 + 32 * 8,
            },
        }
    }
}

/// Bytes below the stack pointer of x86-64 that neither a call nor a signal overwrites. A function
/// that returns soon may have registers of its caller there: compilers note no more that they have
/// been restored.
const RED_ZONE: u64 = 128;

impl Machine {
    /// The instructions by which a signal handler returns to the kernel, as a word, the next one,
    /// and the bits of that which count. A program may have some of its own, without rules.
    const fn restorer(self) -> (u64, u64, u64) {
        match self {
            // mov $15, %rax; syscall
            Self::X86 => (0x0f00_0000_0fc0_c748, 0x05, 0xff),
            // mov x8, #139; svc #0
            Self::Arm64 => (0xd400_0001_d280_1168, 0, 0),
        }
    }
}

/// An executable mapping, in the form that a walk computes with.
#[derive(Clone, Copy, Debug)]
pub struct Near {
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The [`Word`] of its first byte, if that was a return address.
    pub(super) word: u64,
    /// The key of its first byte; [`Key::NONE`] if not all its bytes have one.
    pub(super) key: Key,
}

impl Near {
    /// A mapping, and the key of its first byte, if all its bytes have one.
    pub fn new(mapping: &Mapping, key: Option<Key>) -> Self {
        Self {
            begin: mapping.begin,
            end: mapping.end,
            word: Word::new(mapping.place, false).to_u64(),
            key: key.unwrap_or(Key::NONE),
        }
    }

    /// The key of its first byte, if all its bytes have one.
    pub fn key(&self) -> Option<Key> {
        (self.key != Key::NONE).then_some(self.key)
    }

    /// No address.
    const NONE: Self = Self {
        begin: 0,
        end: 0,
        word: 0,
        key: Key::NONE,
    };

    #[inline(always)]
    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.begin) < self.end.wrapping_sub(self.begin)
    }

    /// The place of an address that it contains.
    fn at(&self, address: u64) -> Place {
        match Word::place(self.word) {
            Some((place, _)) => place.plus(address.wrapping_sub(self.begin)),
            None => Place::Unlisted,
        }
    }

    pub(super) fn is_unlisted(&self) -> bool {
        self.at(self.begin) == Place::Unlisted
    }
}

/// A walk that has come to some frame.
pub struct Walk<'a, P> {
    program: &'a mut P,
    registers: Registers,
    /// The instruction pointer is the address of the instruction that runs next, not a return
    /// address.
    exact: bool,
    /// The mapping of the last address, and the one before: often a program and a library call each
    /// other.
    mappings: [Near; 2],
    /// A word was returned for the current frame.
    begun: bool,
    /// The place of the instruction whose rule counts; `None`: the program has called an address
    /// without code.
    place: Option<Place>,
}

impl<'a, P: Program> Walk<'a, P> {
    /// A walk that begins with the registers of a program.
    pub fn new(program: &'a mut P, registers: Registers) -> Self {
        Self {
            program,
            registers,
            exact: true,
            mappings: [Near::NONE; 2],
            begun: false,
            place: None,
        }
    }

    /// The word of the next frame, the innermost first.
    pub fn next_word(&mut self) -> Result<Word, End> {
        if self.begun {
            self.step()?;
        }
        // A call may be the last instruction of a function: then its return address is in the next.
        let behind = u64::from(!self.exact);
        self.place = match self.find(self.registers.ip.wrapping_sub(behind)) {
            Ok(place) => Some(place),
            // A call by a wrong pointer: its caller is known all the same.
            Err(End::Astray) if self.exact => None,
            Err(end) => return Err(end),
        };
        self.begun = true;
        let place = self.place.unwrap_or(Place::Unlisted);
        Ok(Word::new(place.plus(behind), self.exact))
    }

    /// Takes up to `most` words, the innermost first, and returns how the stack has ended: the same
    /// words as [`Walk::next_word`].
    #[inline(always)]
    pub fn take(&mut self, most: usize, mut word: impl FnMut(Word)) -> End {
        let mut left = most;
        while left > 0 {
            match self.next_word() {
                Ok(next) => word(next),
                Err(end) => return end,
            }
            left = match self.take_plain(left - 1, &mut word) {
                Ok(left) => left,
                Err(end) => return end,
            };
        }
        End::Depth
    }

    /// Takes up to `most` further words, while rules are plain, and mappings have keys. Returns how
    /// many are left. All else is left to [`Walk::next_word`], also how most stacks end: nothing is
    /// done with a frame that is not as expected.
    #[inline(always)]
    fn take_plain(&mut self, most: usize, word: &mut impl FnMut(Word)) -> Result<usize, End> {
        let [mut near, _] = self.mappings;
        if near.key == Key::NONE || self.place.is_none() || !self.program.loads() {
            return Ok(most);
        }
        let Registers {
            mut ip,
            mut sp,
            mut fp,
            ..
        } = self.registers;
        // Of address 0, if the mapping reached that far.
        let mut first = near.key.minus(near.begin);
        let mut of_first = near.word.wrapping_sub(Word::bytes(near.begin));
        let mut key = first.plus(ip).minus(u64::from(!self.exact));
        let mut left = most;
        while left > 0 {
            let Some(plain) = self.program.plain(key) else {
                break;
            };
            let from = if plain.is_by_fp() { fp } else { sp };
            let cfa = from.wrapping_add(plain.cfa());
            let at = cfa.wrapping_sub(match P::MACHINE {
                Machine::X86 => 8,
                Machine::Arm64 => plain.ra(),
            });
            if at < sp || P::MACHINE == Machine::Arm64 && at == cfa {
                if plain.is_outermost() {
                    return Err(End::Whole);
                }
                break;
            }
            let (of_caller, ra) = match plain.fp() {
                0 => (fp, self.program.load(at)),
                bytes => {
                    let below = cfa.wrapping_sub(bytes);
                    if below < sp {
                        break;
                    }
                    self.program.load_two(below, at)
                }
            };
            let ra = ra & self.program.code();
            if ra == 0 {
                break;
            }
            (ip, sp, fp) = (ra, cfa, of_caller);
            if !near.contains(ip.wrapping_sub(1)) {
                let found = self.come_to(ip.wrapping_sub(1));
                [near, _] = self.mappings;
                if found.is_err() || near.key == Key::NONE {
                    self.return_to(ip, sp, fp);
                    self.begun = false;
                    return Ok(left);
                }
                first = near.key.minus(near.begin);
                of_first = near.word.wrapping_sub(Word::bytes(near.begin));
            }
            key = first.plus(ip).minus(1);
            word(Word::of(of_first.wrapping_add(Word::bytes(ip))));
            left -= 1;
        }
        if left < most {
            self.return_to(ip, sp, fp);
            self.place = Some(near.at(ip.wrapping_sub(1)));
        }
        Ok(left)
    }

    /// The place of an address.
    #[inline(always)]
    fn find(&mut self, address: u64) -> Result<Place, End> {
        let [last, _] = &self.mappings;
        if !last.contains(address) {
            self.come_to(address)?;
        }
        let [last, _] = &self.mappings;
        Ok(last.at(address))
    }

    /// Makes the mapping that an address is in the last one.
    #[inline(never)]
    fn come_to(&mut self, address: u64) -> Result<(), End> {
        let [last, before] = self.mappings;
        let near = match before.contains(address) {
            true => before,
            false => self.program.near(address)?,
        };
        self.mappings = [near, last];
        match near.contains(address) {
            true => Ok(()),
            false => Err(End::Astray),
        }
    }

    /// Goes on to the caller.
    fn step(&mut self) -> Result<(), End> {
        let Some(place) = self.place else {
            return self.step_out_of_call();
        };
        let Some(rule) = self.program.rule(place) else {
            return self.step_by_frame_pointer(End::NoRules);
        };
        let Registers { ip, sp, fp, .. } = self.registers;
        let more = i64::from(rule.cfa);
        let cfa = match rule.kind {
            Kind::Outermost => return Err(End::Whole),
            Kind::Signal => return self.step_out_of_handler(),
            Kind::Gap if self.is_at_restorer() => return self.step_out_of_handler(),
            // The file has rules, but not for this code: the frame pointer may be anything.
            Kind::Gap | Kind::Other => return Err(End::NoRules),
            Kind::Frame => return self.step_by_frame_pointer(End::Whole),
            Kind::Sp => sp.wrapping_add_signed(more),
            Kind::Fp => fp.wrapping_add_signed(more),
            Kind::Deref => self.read_from(fp.wrapping_add_signed(more), sp)?,
            Kind::DerefSp => {
                let below = self.read_from(sp.wrapping_add_signed(more), sp)?;
                below.wrapping_add(8)
            }
            Kind::Plt if ip & 15 >= u64::from(rule.cfa.unsigned_abs()) => sp.wrapping_add(16),
            Kind::Plt => sp.wrapping_add(8),
        };
        // Only a function that has not stored its return address may have a frame without a word.
        if cfa < sp || cfa == sp && rule.ra != 0 {
            return Err(End::Astray);
        }
        let ra = match rule.ra {
            0 => self.registers.lr.ok_or(End::NoRules)?,
            words => self.read_of_frame(cfa, words, sp)?,
        };
        let fp = match (rule.kind, rule.fp) {
            (Kind::Deref, _) => self.read_from(fp, sp)?,
            (_, 0) => fp,
            (_, words) => {
                let red_zone = match P::MACHINE {
                    Machine::X86 if self.exact => RED_ZONE,
                    _ => 0,
                };
                self.read_of_frame(cfa, words, sp.saturating_sub(red_zone))?
            }
        };
        if ra & self.program.code() == 0 {
            return Err(End::Whole);
        }
        self.return_to(ra, cfa, fp);
        Ok(())
    }

    /// Goes on to the caller by the two words at the frame pointer: the caller's frame pointer, and
    /// the return address. x86-64 and arm64 have the same two. The outermost frame has 0: for code
    /// that may be without frame pointers, that means nothing.
    fn step_by_frame_pointer(&mut self, outermost: End) -> Result<(), End> {
        if self.is_at_restorer() {
            return self.step_out_of_handler();
        }
        let Registers { sp, fp, .. } = self.registers;
        if fp == 0 {
            return Err(outermost);
        }
        if fp < sp || fp % 8 != 0 {
            return Err(End::NoRules);
        }
        let caller = self.read(fp)?;
        let ra = self.read(fp.wrapping_add(8))?;
        if ra & self.program.code() == 0 {
            return Err(outermost);
        }
        self.return_to(ra, fp.wrapping_add(16), caller);
        match self.find(self.registers.ip.wrapping_sub(1)) {
            Err(End::Astray) => Err(End::NoRules),
            other => other.map(|_| ()),
        }
    }

    /// Goes on to the caller of an address without code: it has only stored where to return to.
    fn step_out_of_call(&mut self) -> Result<(), End> {
        let Registers { sp, fp, .. } = self.registers;
        let (ra, sp) = match P::MACHINE {
            Machine::X86 => (self.read(sp)?, sp.wrapping_add(8)),
            Machine::Arm64 => (self.registers.lr.ok_or(End::Astray)?, sp),
        };
        self.return_to(ra, sp, fp);
        Ok(())
    }

    /// Whether a signal handler returns to here.
    fn is_at_restorer(&mut self) -> bool {
        let (first, second, mask) = const { P::MACHINE.restorer() };
        let ip = self.registers.ip;
        !self.exact
            && self.program.read(ip) == Some(first)
            && (mask == 0
                || self
                    .program
                    .read(ip.wrapping_add(8))
                    .is_some_and(|word| word & mask == second))
    }

    /// Goes on to the code that a signal has interrupted.
    fn step_out_of_handler(&mut self) -> Result<(), End> {
        let frame = const { SignalFrame::of(P::MACHINE) };
        let sp = self.registers.sp;
        let mut saved = |offset| self.read(sp.wrapping_add(offset));
        self.registers = Registers {
            ip: saved(frame.ip)?,
            // The handler may have had a stack of its own, above or below.
            sp: saved(frame.sp)?,
            fp: saved(frame.fp)?,
            // Few functions have it there.
            lr: self.program.read(sp.wrapping_add(frame.lr)),
        };
        self.exact = true;
        Ok(())
    }

    /// Sets the registers that the caller has when it runs again.
    fn return_to(&mut self, ra: u64, sp: u64, fp: u64) {
        self.registers = Registers {
            ip: ra & self.program.code(),
            sp,
            fp,
            // The caller has stored its link register, so its value is not known here.
            lr: None,
        };
        self.exact = false;
    }

    /// Reads a word below the end of a frame, and at `least` or above.
    fn read_of_frame(&mut self, cfa: u64, words: i16, least: u64) -> Result<u64, End> {
        let address = cfa.wrapping_add_signed(i64::from(words) * 8);
        if address >= cfa {
            return Err(End::Astray);
        }
        self.read_from(address, least)
    }

    /// Reads a word at `least` or above.
    fn read_from(&mut self, address: u64, least: u64) -> Result<u64, End> {
        if address < least {
            return Err(End::Astray);
        }
        self.read(address)
    }

    fn read(&mut self, address: u64) -> Result<u64, End> {
        self.program.read(address).ok_or(End::NoMemory)
    }
}
