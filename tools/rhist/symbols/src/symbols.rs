// SPDX-License-Identifier: MIT OR Apache-2.0

//! The functions of an ELF file, by their place in it.

use crate::error::Error;
use crate::extent::Binding;
use crate::extent::Extent;
use crate::extent::Kind;
use crate::extent::resolve;
use crate::limits::MOST_SYMBOLS;
use crate::name::Name;
use crate::names::Names;
use crate::plt;
use crate::plt::Target;
use crate::spans::Spans;
use object::LittleEndian;
use object::elf;
use object::elf::Sym64;
use object::read::elf::SectionHeader;
use object::read::elf::Sym;
use rhist_elf::Code;
use rhist_elf::Image;
use rhist_elf::LE;
use rhist_elf::Section;
use rhist_elf::build_id;
use std::ops::Range;

type Symbol = Sym64<LittleEndian>;

/// A function that names places.
#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    name: u32,
    is_plt: bool,
}

/// The functions of a program or library, by their offset in the file.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: Names,
    functions: Vec<Function>,
    spans: Spans,
}

impl Symbols {
    /// Reads the tables `.symtab` and `.dynsym` of a program or library, of which either may be
    /// missing, and its procedure linkage table.
    ///
    /// A function is a symbol of type `FUNC` or `GNU_IFUNC` in an executable segment, or one
    /// without a type in an executable section, where no function is. A function without a size
    /// reaches to the next one, but not beyond its section. If functions overlap, a place belongs
    /// to the one that begins last; if several begin there, to the global one before a weak one,
    /// and to a local one last.
    ///
    /// # Errors
    ///
    /// The file is not an ELF file of 64 bits for a supported architecture, one of the tables is
    /// not in the file, or it has more than [`MOST_SYMBOLS`].
    pub fn read(image: &[u8]) -> Result<Self, Error> {
        let image = Image::parse(image)?;
        Draft::new(&image).finish(&image, None)
    }

    /// Reads the tables of a program or library and of the file that has its debugging information,
    /// for which [`debug_paths()`](crate::debug_paths) has candidates.
    ///
    /// # Errors
    ///
    /// As for [`read()`](Self::read), of either file; or the build ids are not equal, or missing.
    pub fn read_with_debug(image: &[u8], debug: &[u8]) -> Result<Self, Error> {
        match (build_id(image)?, build_id(debug)?) {
            (Some(id), Some(of_debug)) if id == of_debug => (),
            _ => return Err(Error::OtherBuild),
        }
        let image = Image::parse(image)?;
        let debug = Image::parse(debug)?;
        // Offsets are of the program: the other file lacks the code.
        Draft::new(&image).finish(&image, Some(&debug))
    }

    /// The name of the function that an offset in the file is in, and how far it is behind the
    /// begin of that function. `None` where no function is, such as in gaps between functions with
    /// sizes.
    pub fn find(&self, offset: u64) -> Option<(Name<'_>, u64)> {
        let function = self.functions[self.spans.find(offset)? as usize];
        Some((self.name(function), offset - function.start))
    }

    /// All parts of the file that have names, in ascending order, and those names. A function that
    /// others lie in has several parts.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, Name<'_>)> {
        self.spans
            .iter()
            .map(|(range, number)| (range, self.name(self.functions[number as usize])))
    }

    /// Whether the file lacks functions with a name, as one that was stripped.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    fn name(&self, function: Function) -> Name<'_> {
        Name {
            raw: self.names.get(function.name),
            is_plt: function.is_plt,
        }
    }
}

/// Symbols that are being read.
struct Draft {
    code: Code,
    names: Names,
    extents: Vec<Extent>,
    /// Symbols that were looked at.
    seen: usize,
}

impl Draft {
    fn new(image: &Image<'_>) -> Self {
        Self {
            code: image.code(),
            names: Names::default(),
            extents: Vec::new(),
            seen: 0,
        }
    }

    fn finish(mut self, image: &Image<'_>, debug: Option<&Image<'_>>) -> Result<Symbols, Error> {
        // Functions that choose others, of all tables: address and name.
        let mut resolvers = Vec::new();
        let dynamic = self.table(image, elf::SHT_DYNSYM, &mut resolvers)?;
        self.table(image, elf::SHT_SYMTAB, &mut resolvers)?;
        if let Some(debug) = debug {
            self.table(debug, elf::SHT_SYMTAB, &mut resolvers)?;
        }
        self.entries(image, dynamic, resolvers)?;
        let extents = resolve(self.extents, &self.names);
        let spans = Spans::of_sorted(extents.iter().map(|extent| extent.start..extent.end));
        let functions = extents.iter().map(|extent| Function {
            start: extent.start,
            name: extent.name,
            is_plt: extent.kind == Kind::Plt,
        });
        Ok(Symbols {
            functions: functions.collect(),
            names: self.names,
            spans,
        })
    }

    fn count(&mut self, more: usize) -> Result<(), Error> {
        self.seen += more;
        if self.seen > MOST_SYMBOLS {
            return Err(Error::TooManySymbols);
        }
        Ok(())
    }

    /// Reads the first table of a kind. Returns its symbols, and where their names begin.
    fn table<'a>(
        &mut self,
        file: &Image<'a>,
        kind: u32,
        resolvers: &mut Vec<(u64, u32)>,
    ) -> Result<(&'a [Symbol], u32), Error> {
        let (symbols, base) = self.open(file, kind)?.unwrap_or_default();
        self.count(symbols.len())?;
        for symbol in symbols {
            if let Some(extent) = self.extent(file, symbol, base) {
                if symbol.st_type() == elf::STT_GNU_IFUNC {
                    resolvers.push((symbol.st_value(LE), extent.name));
                }
                self.extents.push(extent);
            }
        }
        Ok((symbols, base))
    }

    /// Finds a table, and takes over its names. Returns the symbols, and where their names begin.
    fn open<'a>(&mut self, file: &Image<'a>, kind: u32) -> Result<Option<(&'a [Symbol], u32)>, Error> {
        let Some(section) = file.sections().iter().find(|section| section.sh_type(LE) == kind) else {
            return Ok(None);
        };
        let part = if kind == elf::SHT_SYMTAB {
            "the section .symtab"
        } else {
            "the section .dynsym"
        };
        let symbols: &[Symbol] = section
            .data_as_array(LE, file.data())
            .map_err(|_| rhist_elf::Error::Header(part))?;
        let names = file
            .sections()
            .get(section.sh_link(LE) as usize)
            .and_then(|names| file.contents(names))
            .ok_or(rhist_elf::Error::Header("the names of symbols"))?;
        Ok(Some((symbols, self.names.add(names)?)))
    }

    /// The part of the file that a symbol names; `None` if it is not a function in an executable
    /// segment.
    fn extent(&self, file: &Image<'_>, symbol: &Symbol, base: u32) -> Option<Extent> {
        let kind = match symbol.st_type() {
            elf::STT_FUNC | elf::STT_GNU_IFUNC => Kind::Function,
            elf::STT_NOTYPE => Kind::Label,
            _ => return None,
        };
        let binding = match symbol.st_bind() {
            elf::STB_LOCAL => Binding::Local,
            elf::STB_WEAK => Binding::Weak,
            elf::STB_GLOBAL | elf::STB_GNU_UNIQUE => Binding::Global,
            _ => return None,
        };
        // A file with so many sections that numbers do not fit is not one of functions.
        let number = symbol.st_shndx(LE);
        if number == elf::SHN_UNDEF || number >= elf::SHN_LORESERVE {
            return None;
        }
        let section = file.sections().get(usize::from(number))?;
        if kind == Kind::Label && section.sh_flags(LE) & u64::from(elf::SHF_EXECINSTR) == 0 {
            return None;
        }
        let (start, size) = (symbol.st_value(LE), symbol.st_size(LE));
        let section_end = end_of(section, start)?;
        let end = match size {
            0 => section_end,
            _ => section_end.min(start.saturating_add(size)),
        };
        let name = base.checked_add(symbol.st_name(LE))?;
        let text = self.names.within(name, 4);
        // Labels of AArch64 say where code and data begin (`$x`, `$d`), which names nothing.
        let is_mapping = matches!(text, [b'$', b'a'..=b'z', b'.', ..] | [b'$', b'a'..=b'z']);
        if text.is_empty() || (kind == Kind::Label && is_mapping) {
            return None;
        }
        Some(Extent {
            name,
            binding,
            kind,
            has_size: size != 0,
            ..self.place(start..end)?
        })
    }

    /// A part of the code, with a size and without a name. What lies behind the segment in which it
    /// begins is left out.
    fn place(&self, addresses: Range<u64>) -> Option<Extent> {
        let segment = self.code.segment(addresses.start)?;
        let offset = |address: u64| segment.offset + (address - segment.addresses.start);
        Some(Extent {
            start: offset(addresses.start),
            end: offset(addresses.end.min(segment.addresses.end)),
            name: 0,
            binding: Binding::Local,
            kind: Kind::Plt,
            has_size: true,
        })
    }

    /// Reads the procedure linkage table, with the symbols of `.dynsym`.
    fn entries(
        &mut self,
        image: &Image<'_>,
        (symbols, base): (&[Symbol], u32),
        mut resolvers: Vec<(u64, u32)>,
    ) -> Result<(), Error> {
        let entries = plt::entries(image);
        self.count(entries.len())?;
        resolvers.sort_unstable();
        for entry in entries {
            let name = match entry.target {
                Target::Symbol(number) => symbols
                    .get(number as usize)
                    .and_then(|symbol| base.checked_add(symbol.st_name(LE))),
                Target::Resolver(address) => {
                    let at = resolvers.partition_point(|&(other, _)| other < address);
                    resolvers
                        .get(at)
                        .filter(|&&(other, _)| other == address)
                        .map(|&(_, name)| name)
                }
            };
            let name = name.filter(|&name| !self.names.within(name, 1).is_empty());
            if let (Some(name), Some(extent)) = (name, self.place(entry.addresses)) {
                self.extents.push(Extent { name, ..extent });
            }
        }
        Ok(())
    }
}

/// The end of a section, if an address is in it.
fn end_of(section: &Section, address: u64) -> Option<u64> {
    let start = section.sh_addr(LE);
    let end = start.saturating_add(section.sh_size(LE));
    (start..end).contains(&address).then_some(end)
}
