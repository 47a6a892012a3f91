// SPDX-License-Identifier: MIT OR Apache-2.0

//! Small ELF files with symbols of the tests' choice.

use rhist_elf::Machine;
use rhist_symbols::Error;
use rhist_symbols::Symbols;

/// Offset of the section `.text` in the file.
pub const CODE: u64 = 0x1000;
/// Address of `.text`.
pub const CODE_ADDRESS: u64 = 0x40_1000;
/// Size of `.text`, behind which `.plt` and then `.plt.sec` begin, of the same size each.
pub const CODE_SIZE: u64 = 0x1000;
/// Address of the section of data.
pub const DATA_ADDRESS: u64 = 0x60_0000;

pub const NOTYPE: u8 = 0;
pub const OBJECT: u8 = 1;
pub const FUNC: u8 = 2;
pub const IFUNC: u8 = 10;
pub const LOCAL: u8 = 0;
pub const GLOBAL: u8 = 1;
pub const WEAK: u8 = 2;

/// Numbers of sections.
pub const UNDEF: u16 = 0;
pub const TEXT: u16 = 1;
pub const PLT: u16 = 2;
pub const DATA: u16 = 4;

#[derive(Clone, Debug)]
pub struct Symbol {
    pub name: Vec<u8>,
    pub kind: u8,
    pub bind: u8,
    pub section: u16,
    pub value: u64,
    pub size: u64,
}

/// A global function, `start` bytes behind the begin of the code.
pub fn func(name: &str, start: u64, size: u64) -> Symbol {
    Symbol {
        name: name.into(),
        kind: FUNC,
        bind: GLOBAL,
        section: TEXT,
        value: CODE_ADDRESS + start,
        size,
    }
}

impl Symbol {
    pub fn bind(self, bind: u8) -> Self {
        Self { bind, ..self }
    }

    pub fn kind(self, kind: u8) -> Self {
        Self { kind, ..self }
    }

    pub fn section(self, section: u16) -> Self {
        Self { section, ..self }
    }
}

#[derive(Clone, Debug)]
pub struct File {
    pub machine: Machine,
    pub symtab: Option<Vec<Symbol>>,
    pub dynsym: Option<Vec<Symbol>>,
    pub plt: Vec<u8>,
    pub plt_sec: Vec<u8>,
    /// Relocations: address, type, symbol, addend.
    pub rela_plt: Vec<(u64, u32, u32, u64)>,
    pub build_id: Vec<u8>,
    /// As in a file with debugging information: the code is not in the file, and segments lead
    /// nowhere.
    pub is_debug: bool,
}

impl File {
    pub fn new(symtab: Vec<Symbol>) -> Self {
        Self {
            machine: Machine::X86_64,
            symtab: Some(symtab),
            dynsym: None,
            plt: Vec::new(),
            plt_sec: Vec::new(),
            rela_plt: Vec::new(),
            build_id: Vec::new(),
            is_debug: false,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; CODE as usize];
        let part = |bytes: &mut Vec<u8>, contents: &[u8]| {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            let at = bytes.len() as u64;
            bytes.extend(contents);
            (at, contents.len() as u64)
        };
        let mut code = vec![0x90; CODE_SIZE as usize];
        for plt in [&self.plt, &self.plt_sec] {
            code.extend(plt);
            code.resize(code.len().next_multiple_of(CODE_SIZE as usize), 0xcc);
        }
        code.resize(3 * CODE_SIZE as usize, 0xcc);
        if self.is_debug {
            code.clear();
        }
        part(&mut bytes, &code);
        let mut note = Vec::new();
        for number in [4, self.build_id.len() as u32, 3] {
            note.extend(number.to_le_bytes());
        }
        note.extend(b"GNU\0");
        note.extend(&self.build_id);
        let note = part(&mut bytes, &note);
        let rela: Vec<u8> = self
            .rela_plt
            .iter()
            .flat_map(|&(address, kind, symbol, addend)| {
                [address, u64::from(symbol) << 32 | u64::from(kind), addend].map(u64::to_le_bytes)
            })
            .flatten()
            .collect();
        let rela = part(&mut bytes, &rela);
        let mut table = |symbols: &Option<Vec<Symbol>>| {
            let mut names = vec![0];
            let mut rows = vec![0; 24];
            for symbol in symbols.iter().flatten() {
                rows.extend((names.len() as u32).to_le_bytes());
                rows.extend([symbol.bind << 4 | symbol.kind, 0]);
                rows.extend(symbol.section.to_le_bytes());
                rows.extend(symbol.value.to_le_bytes());
                rows.extend(symbol.size.to_le_bytes());
                names.extend(&symbol.name);
                names.push(0);
            }
            (part(&mut bytes, &rows), part(&mut bytes, &names))
        };
        let (symtab, strtab) = table(&self.symtab);
        let (dynsym, dynstr) = table(&self.dynsym);
        let text = "\0.text\0.plt\0.plt.sec\0.data\0.rela.plt\0.shstrtab\0";
        let shstrtab = part(&mut bytes, text.as_bytes());
        let name = |name: &str| text.find(name).unwrap_or(0) as u32;
        let progbits = if self.is_debug { 8 } else { 1 };
        let kind = |table: &Option<_>, kind| if table.is_some() { kind } else { 0 };
        // Name, type, flags, address, (offset, size), link, size of a row.
        let at = |number: u64| CODE_ADDRESS + number * CODE_SIZE;
        let place = |number: u64, size: usize| (CODE + number * CODE_SIZE, size as u64);
        let sections = [
            (0_u32, 0_u32, 0, 0, (0, 0), 0_u32, 0),
            (name(".text"), progbits, 6, at(0), place(0, CODE_SIZE as usize), 0, 0),
            (name(".plt\0"), progbits, 6, at(1), place(1, self.plt.len()), 0, 16),
            (
                name(".plt.sec"),
                progbits,
                6,
                at(2),
                place(2, self.plt_sec.len()),
                0,
                16,
            ),
            (name(".data"), 1, 3, DATA_ADDRESS, (0, 0x1000), 0, 0),
            (0, kind(&self.symtab, 2), 0, 0, symtab, 6, 24),
            (0, 3, 0, 0, strtab, 0, 0),
            (0, kind(&self.dynsym, 11), 2, 0, dynsym, 8, 24),
            (0, 3, 2, 0, dynstr, 0, 0),
            (name(".rela.plt"), 4, 2, 0, rela, 7, 24),
            (0, 7, 2, 0, note, 0, 0),
            (name(".shstrtab"), 3, 0, 0, shstrtab, 0, 0),
        ];
        let table = part(&mut bytes, &[]).0;
        for (name, kind, flags, address, (offset, size), link, row) in sections {
            bytes.extend(name.to_le_bytes());
            bytes.extend(kind.to_le_bytes());
            for number in [flags, address, offset, size, u64::from(link), 1, row] {
                bytes.extend(number.to_le_bytes());
            }
        }
        let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        head.extend(3_u16.to_le_bytes());
        head.extend(self.machine.number().to_le_bytes());
        head.extend(1_u32.to_le_bytes());
        for number in [0, 64, table] {
            head.extend(number.to_le_bytes());
        }
        head.extend([0; 4]);
        for number in [64, 56, 1, 64, sections.len() as u16, sections.len() as u16 - 1] {
            head.extend(number.to_le_bytes());
        }
        let in_file = if self.is_debug { 0 } else { 3 * CODE_SIZE };
        head.extend([1, 0, 0, 0, 5, 0, 0, 0]);
        for number in [CODE, CODE_ADDRESS, CODE_ADDRESS, in_file, 3 * CODE_SIZE, 0x1000] {
            head.extend(number.to_le_bytes());
        }
        bytes[..head.len()].copy_from_slice(&head);
        bytes
    }

    pub fn read(&self) -> Result<Symbols, Error> {
        Symbols::read(&self.bytes())
    }
}

/// All parts with names: begin relative to the code, end, name as it is shown.
pub fn parts(symbols: &Symbols) -> Vec<(i64, i64, String)> {
    let relative = |offset: u64| offset as i64 - CODE as i64;
    symbols
        .iter()
        .map(|(range, name)| (relative(range.start), relative(range.end), name.shown().to_string()))
        .collect()
}

/// Asserts that a table of symbols has these parts.
pub fn assert_parts(symtab: &[Symbol], expected: &[(i64, i64, &str)]) {
    // In any order.
    for reversed in [false, true] {
        let mut symtab = symtab.to_vec();
        if reversed {
            symtab.reverse();
        }
        let symbols = File::new(symtab).read().unwrap();
        let expected: Vec<_> = expected
            .iter()
            .map(|&(start, end, name)| (start, end, name.to_owned()))
            .collect();
        assert_eq!(parts(&symbols), expected);
    }
}
