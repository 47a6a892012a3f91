// SPDX-License-Identifier: GPL-2.0

//! Exercise of rules from a hostile writer, on the stack of a hostile program.

use rhist::user_stack::{
    End, Machine, Mapping, Near, Place, Program, Registers, Rule, Rules, Upload, Walk, Word,
};

/// Words of the memory of the program, which is at [`STACK`].
const WORDS: usize = 32;
const STACK: u64 = 0x7000;
const CODE: std::ops::Range<u64> = 0x40_0000..0x42_0000;

/// Exercises rules: any bytes are refused or valid, without a panic, and then a walk ends.
///
/// The first byte has the architecture and the size of the pieces that are written. Behind it are
/// 256 bytes for the memory and the registers of a program; then the rules.
pub(crate) fn exercise(input: &[u8]) {
    let Some((&first, rest)) = input.split_first() else {
        return;
    };
    let Some((memory, bytes)) = rest.split_at_checked(8 * WORDS) else {
        return;
    };
    let memory: Vec<u64> = memory
        .chunks(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let piece = usize::from(first >> 1) + 1;
    if first & 1 == 0 {
        written::<false>(bytes, piece, &memory);
    } else {
        written::<true>(bytes, piece, &memory);
    }
}

fn written<const ARM: bool>(bytes: &[u8], piece: usize, memory: &[u64]) {
    let mut upload = Upload::new(Victim::<ARM>::MACHINE);
    let mut fault = None;
    for piece in bytes.chunks(piece) {
        let written = upload.write(piece).err();
        assert!(fault.is_none() || written == fault);
        fault = written;
    }
    let is_complete = upload.is_complete();
    let Ok(rules) = upload.finish(|| ()) else {
        return;
    };
    assert_eq!(fault, None);
    assert!(is_complete);
    assert_eq!(rules.size(), bytes.len());
    let &[ip, sp, fp, lr, ..] = memory else {
        return;
    };
    let mut victim = Victim::<ARM> {
        rules: &rules,
        memory,
        reads: 0,
    };
    let mut walk = Walk::new(
        &mut victim,
        Registers {
            ip,
            sp,
            fp,
            lr: Some(lr),
        },
    );
    let mut words = 0;
    while words < 127 {
        let Ok(word) = walk.next_word() else {
            break;
        };
        let (place, exact) = Word::place(word.to_u64()).unwrap();
        assert!(match place {
            Place::File { object: 1, offset } => offset - u64::from(!exact) < CODE.end - CODE.start,
            place => place == Place::Unlisted && exact,
        });
        words += 1;
    }
    assert!(victim.reads <= 6 * (words + 1));
}

struct Victim<'a, const ARM: bool> {
    rules: &'a Rules,
    memory: &'a [u64],
    reads: usize,
}

impl<const ARM: bool> Program for Victim<'_, ARM> {
    const MACHINE: Machine = if ARM { Machine::Arm64 } else { Machine::X86 };

    fn code(&self) -> u64 {
        if ARM {
            (1 << 48) - 1
        } else {
            u64::MAX
        }
    }

    fn near(&mut self, address: u64) -> Result<Near, End> {
        let place = Place::File {
            object: 1,
            offset: 0,
        };
        let mapping = Mapping {
            begin: CODE.start,
            end: CODE.end,
            place,
        };
        CODE.contains(&address)
            .then_some(Near::new(&mapping, None))
            .ok_or(End::Astray)
    }

    fn read(&mut self, address: u64) -> Option<u64> {
        self.reads += 1;
        let offset = address.checked_sub(STACK)?;
        self.memory.get(usize::try_from(offset / 8).ok()?).copied()
    }

    fn rule(&mut self, place: Place) -> Option<Rule> {
        match place {
            Place::File { offset, .. } => Some(self.rules.find(offset)),
            _ => None,
        }
    }
}
