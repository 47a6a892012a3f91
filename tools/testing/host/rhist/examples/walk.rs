// SPDX-License-Identifier: GPL-2.0

//! `walk PID IP SP FP`: walks the stack of a stopped program on x86-64 by the code of the module,
//! from these registers, in hexadecimal. Standard input has a line for each file with rules: its
//! path (or `[vdso]`), a tabulator, and the path of its table. Prints an address per line, and how
//! the stack ended.
//!
//! Each address is found again from the word of the stack, so that a wrong word is a wrong address.

#[cfg(loom)]
fn main() {}

#[cfg(not(loom))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    live::main()
}

#[cfg(not(loom))]
mod live {
    use std::{
        collections::HashMap,
        env,
        error::Error,
        fs::{self, File},
        io::{self, BufRead},
        ops::Range,
        os::unix::fs::FileExt,
    };

    use rhist::user_stack::{
        End, Machine, Mapping, Near, Place, Program, Registers, Rule, Rules, Upload, Walk, Word,
    };

    /// As the limit of the module.
    const DEPTH: usize = 127;

    pub(super) fn main() -> Result<(), Box<dyn Error>> {
        let arguments: Vec<String> = env::args().skip(1).collect();
        let [pid, ip, sp, fp] = &arguments[..] else {
            return Err("usage: walk PID IP SP FP".into());
        };
        let register = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16);
        let registers = Registers {
            ip: register(ip)?,
            sp: register(sp)?,
            fp: register(fp)?,
            lr: None,
        };
        let mut live = Live::open(pid, tables()?)?;
        let areas = live.areas.clone();
        let mut walk = Walk::new(&mut live, registers);
        for _ in 0..DEPTH {
            match walk.next_word() {
                Ok(word) => println!("{:#x}", address(&areas, registers.ip, word)?),
                Err(end) => {
                    println!("{end:?}");
                    return Ok(());
                }
            }
        }
        println!("{:?}", End::Depth);
        Ok(())
    }

    /// The rules of files, by path.
    fn tables() -> Result<HashMap<String, Rules>, Box<dyn Error>> {
        let mut tables = HashMap::new();
        for line in io::stdin().lock().lines() {
            let line = line?;
            let (path, table) = line.split_once('\t').ok_or("a line without a tabulator")?;
            let mut upload = Upload::new(Machine::X86);
            let rules = upload
                .write(&fs::read(table)?)
                .and_then(|()| upload.finish(|| ()))
                .map_err(|fault| format!("{path}: {fault:?}"))?;
            tables.insert(path.to_owned(), rules);
        }
        Ok(tables)
    }

    /// The address that a word stands for. If that is without code, the program has called it first
    /// of all.
    fn address(areas: &[Area], first: u64, word: Word) -> Result<u64, Box<dyn Error>> {
        let (place, exact) = Word::place(word.to_u64()).ok_or("not a word")?;
        if place == Place::Unlisted && exact {
            return Ok(first);
        }
        let address = |area: &Area| {
            let offset = match (area.place, place) {
                (
                    Place::File { object, offset },
                    Place::File {
                        object: of,
                        offset: at,
                    },
                ) if object == of => at.checked_sub(offset),
                (Place::Vdso { .. }, Place::Vdso { offset }) => Some(offset),
                (
                    Place::Memory { mapping, .. },
                    Place::Memory {
                        mapping: of,
                        offset,
                    },
                ) if mapping == of => Some(offset),
                _ => None,
            };
            let address = area.range.start + offset?;
            // A return address may be the one behind a mapping.
            area.range
                .contains(&(address - u64::from(!exact)))
                .then_some(address)
        };
        areas
            .iter()
            .find_map(address)
            .ok_or_else(|| format!("{place:?} is nowhere").into())
    }

    /// An executable mapping.
    #[derive(Clone)]
    struct Area {
        range: Range<u64>,
        place: Place,
    }

    struct Live {
        memory: File,
        areas: Vec<Area>,
        /// By the number of the object.
        rules: Vec<Option<Rules>>,
        vdso: Option<Rules>,
    }

    impl Live {
        fn open(pid: &str, mut tables: HashMap<String, Rules>) -> Result<Self, Box<dyn Error>> {
            let mut paths: Vec<String> = Vec::new();
            let mut live = Self {
                memory: File::open(format!("/proc/{pid}/mem"))?,
                areas: Vec::new(),
                rules: Vec::new(),
                vdso: tables.remove("[vdso]"),
            };
            for line in fs::read_to_string(format!("/proc/{pid}/maps"))?.lines() {
                let words: Vec<&str> = line.split_ascii_whitespace().collect();
                let [range, rights, offset, _device, _inode, path @ ..] = &words[..] else {
                    return Err(format!("maps: {line}").into());
                };
                if !rights.contains('x') {
                    continue;
                }
                let hex = |text: &str| u64::from_str_radix(text, 16);
                let (begin, end) = range.split_once('-').ok_or("maps: no range")?;
                let place = match path {
                    ["[vdso]"] => Place::Vdso { offset: 0 },
                    [path] if path.starts_with('/') => {
                        let known = paths.iter().position(|other| other == path);
                        let object = known.unwrap_or_else(|| {
                            paths.push((*path).to_owned());
                            live.rules.push(tables.remove(*path));
                            paths.len() - 1
                        });
                        Place::File {
                            object: object as u32,
                            offset: hex(offset)?,
                        }
                    }
                    _ => Place::Memory {
                        mapping: live.areas.len() as u32,
                        offset: 0,
                    },
                };
                live.areas.push(Area {
                    range: hex(begin)?..hex(end)?,
                    place,
                });
            }
            Ok(live)
        }
    }

    impl Program for Live {
        const MACHINE: Machine = Machine::X86;

        fn code(&self) -> u64 {
            u64::MAX
        }

        fn near(&mut self, address: u64) -> Result<Near, End> {
            let area = self.areas.iter().find(|area| area.range.contains(&address));
            let Area { range, place } = area.ok_or(End::Astray)?;
            let mapping = Mapping {
                begin: range.start,
                end: range.end,
                place: *place,
            };
            Ok(Near::new(&mapping, None))
        }

        fn read(&mut self, address: u64) -> Option<u64> {
            let mut word = [0; 8];
            self.memory.read_exact_at(&mut word, address).ok()?;
            Some(u64::from_le_bytes(word))
        }

        fn rule(&mut self, place: Place) -> Option<Rule> {
            match place {
                Place::File { object, offset } => {
                    Some(self.rules.get(object as usize)?.as_ref()?.find(offset))
                }
                Place::Vdso { offset } => Some(self.vdso.as_ref()?.find(offset)),
                _ => None,
            }
        }
    }
}
