// SPDX-License-Identifier: GPL-2.0

//! Takes the stack of the program that a hit has interrupted, or that has called the kernel, by the
//! rules of its objects.

use crate::{
    event::Tail,
    rust::user_stack::{
        self as raw,
        Absence,
        Mapped,
        Room,
        Unmapped,
        UserMapping,
        UserProgram, //
    },
    sync::PreemptOff,
    user_stack::{
        End,
        Era,
        ExecFiles,
        FileIdentity,
        FileVersion,
        Held,
        Here,
        Identity,
        Key,
        Machine,
        Mapping,
        Near,
        Objects,
        Place,
        Plain,
        Program,
        Registers,
        Rule,
        Rulebook,
        Walk,
        Word, //
    },
};

/// The kernel's files.
pub(crate) struct KernelFiles;

impl ExecFiles for KernelFiles {
    unsafe fn get(&self, file: usize) {
        // SAFETY: The caller has a reference.
        unsafe { raw::get(file) }
    }

    unsafe fn settle(&self, file: usize) -> Option<usize> {
        // SAFETY: The caller has a reference.
        unsafe { raw::settle(file) }
    }

    unsafe fn put(&self, file: usize) {
        // SAFETY: The caller gives up its reference.
        unsafe { raw::put(file) }
    }
}

/// The running program, with the objects that its words name.
struct Running<'a, 'b> {
    program: UserProgram<'a, 'b>,
    objects: &'a Objects,
    rules: Rulebook<'a>,
    era: Era,
    here: Here,
    preempt: PreemptOff<'a>,
}

impl<'a> Running<'a, '_> {
    fn hold(program: &UserProgram<'a, '_>, mapping: &UserMapping<'a>) -> Held {
        match program.hold(mapping) {
            // SAFETY: The reference belongs to this function, which gives it away.
            Some((file, fits)) => unsafe { Held::new(file, fits) },
            None if mapping.can_be_held() => Held::NONE,
            None => Held::NEVER,
        }
    }

    /// The number of the object that is mapped.
    fn number(&self, mapping: &UserMapping<'a>, identity: &Identity) -> Option<u32> {
        let hold = || Self::hold(&self.program, mapping);
        self.objects.number(self.preempt, identity, hold)
    }

    /// The place of the first byte of a mapping.
    fn place(&self, mapping: &UserMapping<'a>) -> Place {
        let identity = match mapping.mapped() {
            Mapped::Vdso => {
                return Place::Vdso {
                    offset: mapping.offset(),
                }
            }
            Mapped::File {
                device,
                inode,
                generation,
                size,
                changed_ns,
            } => Identity::File(FileIdentity {
                device,
                inode,
                generation,
                size,
                changed_ns,
            }),
            Mapped::Memory => Identity::Memory {
                process: self.program.process(),
                space: self.program.space(),
                begin: mapping.begin(),
            },
        };
        match (self.number(mapping, &identity), identity) {
            (None, _) => Place::Unlisted,
            (Some(object), Identity::File(_)) => Place::File {
                object,
                offset: mapping.offset(),
            },
            (Some(number), Identity::Memory { .. }) => Place::Memory {
                mapping: number,
                offset: 0,
            },
        }
    }

    /// Comes to a mapping that is not known: looks for it in the program's tree.
    #[inline(never)]
    fn come_to(&self, address: u64) -> Result<Near, End> {
        let found = match self.program.mapping(address) {
            Ok(found) => found,
            Err(Unmapped::Astray) => return Err(End::Astray),
            Err(Unmapped::Changing) => return Err(End::Changing),
        };
        let mapping = Mapping {
            begin: found.begin(),
            end: found.end(),
            place: self.place(&found),
        };
        let version = match found.mapped() {
            Mapped::File {
                size, changed_ns, ..
            } => Some(FileVersion {
                inode: found.inode(),
                size,
                changed_ns,
            }),
            Mapped::Memory | Mapped::Vdso => None,
        };
        Ok(self
            .objects
            .keep(self.here, &self.era, address, &mapping, version))
    }
}

impl Program for Running<'_, '_> {
    const MACHINE: Machine = match cfg!(CONFIG_ARM64) {
        true => Machine::Arm64,
        false => Machine::X86,
    };

    #[inline(always)]
    fn code(&self) -> u64 {
        self.program.code()
    }

    #[inline(always)]
    fn near(&mut self, address: u64) -> Result<Near, End> {
        let is_same = |file: &FileVersion| {
            self.program
                .is_same_file(file.inode, file.size, file.changed_ns)
        };
        match self.objects.known(self.here, &self.era, address, is_same) {
            Some(near) => Ok(near),
            None => self.come_to(address),
        }
    }

    #[inline(always)]
    fn read(&mut self, address: u64) -> Option<u64> {
        self.program.read(address)
    }

    #[inline(always)]
    fn loads(&self) -> bool {
        self.program.reads()
    }

    #[inline(always)]
    fn load(&mut self, address: u64) -> u64 {
        self.program.load(address)
    }

    #[inline(always)]
    fn load_two(&mut self, first: u64, second: u64) -> (u64, u64) {
        self.program.load_two(first, second)
    }

    #[inline(always)]
    fn plain(&mut self, key: Key) -> Option<Plain> {
        self.objects.plain(self.rules, key)
    }

    #[inline(always)]
    fn rule(&mut self, place: Place) -> Option<Rule> {
        let (number, offset) = match place {
            Place::File { object, offset } => (object, offset),
            Place::Vdso { offset } => (Objects::VDSO, offset),
            Place::Memory { .. } | Place::Unlisted => return None,
        };
        self.objects.rule(self.preempt, number, offset)
    }
}

/// Writes the words of the running program's stack to `to`: at most `most`, of which the last one
/// may say how it ended. Counts the end. Any context.
pub(super) fn take<'a>(
    objects: &'a Objects,
    preempt: PreemptOff<'a>,
    most: usize,
    to: &mut Tail<'_>,
) {
    let mut room = Room::new();
    let end = match UserProgram::begin(preempt, &mut room) {
        Ok(program) => walk(objects, preempt, program, most, to),
        Err(Absence::NoProgram) => End::NoProgram,
        Err(Absence::Foreign) => End::Foreign,
        Err(Absence::Nested) => End::Nested,
        Err(Absence::Entering) => End::Entering,
    };
    objects.count(preempt, end);
    match end {
        End::Whole | End::Depth => (),
        end => to.push(Word::end(end).to_u64()),
    }
}

/// Walks the stack. Leaves room for the word of an end.
fn walk<'a>(
    objects: &'a Objects,
    preempt: PreemptOff<'a>,
    program: UserProgram<'a, '_>,
    most: usize,
    to: &mut Tail<'_>,
) -> End {
    let registers = program.registers();
    let Some(rules) = objects.rulebook() else {
        return End::NoRules;
    };
    let era = objects.era(program.space(), program.mappings());
    let here = Here::new(preempt, program.context());
    let mut running = Running {
        program,
        objects,
        rules,
        era,
        here,
        preempt,
    };
    let mut walk = Walk::new(
        &mut running,
        Registers {
            ip: registers.ip,
            sp: registers.sp,
            fp: registers.fp,
            lr: Some(registers.lr),
        },
    );
    to.append(|to| walk.take(most, |word| to.push(word.to_u64())))
}
