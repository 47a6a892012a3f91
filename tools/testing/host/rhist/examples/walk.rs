// SPDX-License-Identifier: GPL-2.0

//! `walk PID IP SP FP DI`: walks the stack of a stopped program on x86-64 by the module's code,
//! from these registers, in hexadecimal.
//!
//! Standard input has a line for each file with rules: its device and inode as in `/proc/PID/maps`,
//! such as `fe:00 77` (or `[vdso]`), a tabulator, and the path of its table. Prints an address per
//! line, `?` for one without code that an interrupted function had called, and the end's name.
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
        let [pid, ip, sp, fp, di] = &arguments[..] else {
            return Err("usage: walk PID IP SP FP DI".into());
        };
        let register = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16);
        let registers = Registers {
            ip: register(ip)?,
            sp: register(sp)?,
            fp: register(fp)?,
            lr: Some(register(di)?),
        };
        let mut live = Live::open(pid, tables()?)?;
        let areas = live.areas.clone();
        let mut walk = Walk::new(&mut live, registers);
        for depth in 0..DEPTH {
            match walk.next_word() {
                Ok(word) => match address(&areas, word)? {
                    Some(address) => println!("{address:#x}"),
                    None if depth == 0 => println!("{:#x}", registers.ip),
                    None => println!("?"),
                },
                Err(end) => {
                    println!("{end:?}");
                    return Ok(());
                }
            }
        }
        println!("{:?}", End::Depth);
        Ok(())
    }

    /// The rules of files, by their devices and inodes.
    fn tables() -> Result<HashMap<String, Rules>, Box<dyn Error>> {
        let mut tables = HashMap::new();
        for line in io::stdin().lock().lines() {
            let line = line?;
            let (file, table) = line.split_once('\t').ok_or("a line without a tabulator")?;
            let mut upload = Upload::new(Machine::X86);
            let rules = upload
                .write(&fs::read(table)?)
                .and_then(|()| upload.finish(|| ()))
                .map_err(|fault| format!("{file}: {fault:?}"))?;
            tables.insert(file.to_owned(), rules);
        }
        Ok(tables)
    }

    /// The address that a word stands for; `None` if that is without code.
    fn address(areas: &[Area], word: Word) -> Result<Option<u64>, Box<dyn Error>> {
        let (place, exact) = Word::place(word.to_u64()).ok_or("not a word")?;
        if place == Place::Unlisted && exact {
            return Ok(None);
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
            .map(Some)
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
            let mut files: Vec<String> = Vec::new();
            let mut live = Self {
                memory: File::open(format!("/proc/{pid}/mem"))?,
                areas: Vec::new(),
                rules: Vec::new(),
                vdso: tables.remove("[vdso]"),
            };
            for line in fs::read_to_string(format!("/proc/{pid}/maps"))?.lines() {
                let words: Vec<&str> = line.split_ascii_whitespace().collect();
                let [range, rights, offset, device, inode, path @ ..] = &words[..] else {
                    return Err(format!("maps: {line}").into());
                };
                if !rights.contains('x') {
                    continue;
                }
                let hex = |text: &str| u64::from_str_radix(text, 16);
                let (begin, end) = range.split_once('-').ok_or("maps: no range")?;
                let place = match path {
                    ["[vdso]"] => Place::Vdso { offset: 0 },
                    _ if *inode != "0" => {
                        let file = format!("{device} {inode}");
                        let known = files.iter().position(|other| *other == file);
                        let object = known.unwrap_or_else(|| {
                            live.rules.push(tables.remove(&file));
                            files.push(file);
                            files.len() - 1
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
