// SPDX-License-Identifier: GPL-2.0

//! Takes the stack of the program that a hit has interrupted, or that has called the kernel, by the
//! rules of its objects.

use crate::{
    event::Stack,
    rust::user_stack::{
        self as raw,
        Absence,
        Mapped,
        Unmapped,
        UserMapping,
        UserProgram, //
    },
    sync::PreemptOff,
    user_stack::{
        End,
        ExecFiles,
        FileIdentity,
        Held,
        Identity,
        Machine,
        Mapping,
        Objects,
        Place,
        Program,
        Registers,
        Rule,
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
struct Running<'a> {
    program: UserProgram<'a>,
    objects: &'a Objects,
    preempt: PreemptOff<'a>,
}

impl<'a> Running<'a> {
    fn hold(program: &UserProgram<'a>, mapping: &UserMapping<'a>) -> Held {
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
}

impl Program for Running<'_> {
    const MACHINE: Machine = match cfg!(CONFIG_ARM64) {
        true => Machine::Arm64,
        false => Machine::X86,
    };

    #[inline(always)]
    fn code(&self) -> u64 {
        self.program.code()
    }

    fn mapping(&mut self, address: u64) -> Result<Mapping, End> {
        match self.program.mapping(address) {
            Ok(mapping) => Ok(Mapping {
                begin: mapping.begin(),
                end: mapping.end(),
                place: self.place(&mapping),
            }),
            Err(Unmapped::Astray) => Err(End::Astray),
            Err(Unmapped::Changing) => Err(End::Changing),
        }
    }

    #[inline(always)]
    fn read(&mut self, address: u64) -> Option<u64> {
        self.program.read(address)
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

/// Writes the words of the running program's stack to `to`, which is empty: at most `most`, of
/// which the last one may say how it ended. Counts the end. Any context.
pub(super) fn take<'a>(objects: &'a Objects, preempt: PreemptOff<'a>, most: usize, to: &mut Stack) {
    let end = match UserProgram::begin(preempt) {
        Ok(program) => walk(objects, preempt, program, most, to),
        Err(Absence::NoProgram) => End::NoProgram,
        Err(Absence::Foreign) => End::Foreign,
        Err(Absence::Nested) => End::Nested,
        Err(Absence::Entering) => End::Entering,
    };
    objects.count(preempt, end);
    match end {
        End::Whole | End::Depth => (),
        end => to.extend([Word::end(end).to_u64()]),
    }
}

/// Walks the stack. Leaves room for the word of an end.
fn walk<'a>(
    objects: &'a Objects,
    preempt: PreemptOff<'a>,
    program: UserProgram<'a>,
    most: usize,
    to: &mut Stack,
) -> End {
    let registers = program.registers();
    let mut running = Running {
        program,
        objects,
        preempt,
    };
    let mut walk = Walk::new(
        &mut running,
        Registers {
            ip: registers.ip,
            sp: registers.sp,
            fp: registers.fp,
            lr: registers.lr,
        },
    );
    for _ in 0..most {
        match walk.next_word() {
            Ok(word) => to.extend([word.to_u64()]),
            Err(end) => return end,
        }
    }
    End::Depth
}
