// SPDX-License-Identifier: MIT OR Apache-2.0

//! Keys that only rhist's histograms support: addresses of the internet protocol (`.ip`), and
//! strings that a field points to (`.string`).

use super::commands::Plan;
use super::error::Error;
use super::measure::formats;
use super::measure::split_key;
use super::options::Asked;
use super::options::has_dist;
use crate::recipe::Measure;
use crate::recipe::NameKind;
use crate::tracefs::Tracefs;
use crate::tracefs::format::Field;
use crate::tracefs::format::FieldKind;
use crate::tracefs::format::Format;

fn field<'a>(formats: &'a [Format], name: &str) -> Option<&'a Field> {
    formats.iter().find_map(|format| format.field(name))
}

/// Adds the modifier to keys that are fields with an address.
pub(super) fn add_modifiers(tracefs: &Tracefs, measure: &Measure, keys: &mut [String]) {
    let formats = formats(tracefs, measure);
    for key in keys {
        if field(&formats, key).is_some_and(Field::is_address) {
            *key += ".ip";
        }
    }
}

/// A question with numbers instead of addresses.
pub(super) struct Numbers {
    measure: Measure,
    keys: Vec<String>,
}

impl Numbers {
    /// Replaces measure and keys by the ones with numbers.
    pub(super) fn asked<'a>(&'a self, asked: Asked<'a>) -> Asked<'a> {
        Asked {
            measure: &self.measure,
            keys: &self.keys,
            ..asked
        }
    }
}

/// Replaces addresses by numbers, for histograms of C and for synthetic events: neither can hold
/// addresses of 16 bytes, but an IPv4 address fits in a number. Adds a note to the plan. Fails if
/// the event has no IPv4 field.
pub(super) fn as_numbers(plan: &mut Plan, asked: Asked<'_>) -> Result<Numbers, Error> {
    let formats = formats(asked.tracefs, asked.measure);
    let is_c = !has_dist(asked.tracefs);
    let mut numbers = Numbers {
        measure: asked.measure.clone(),
        keys: asked.keys.to_vec(),
    };
    let mut is_only_ipv4 = false;
    let mut number_of = |text: &mut String| -> Result<Option<(String, String)>, Error> {
        let (name, modifier) = split_key(text);
        match modifier {
            Some("string") if is_c => {
                return Err(Error::Impossible(format!(
                    "{text}: C's histograms cannot follow a pointer to a string: load rhist"
                )));
            }
            Some("ip") => (),
            _ => return Ok(None),
        }
        let is_number = |field: &&Field| {
            field.size == 4 && !field.is_elsewhere() && matches!(field.kind, FieldKind::Bytes | FieldKind::Number)
        };
        let of_ipv4 = |name: &str| field(&formats, name).filter(is_number).map(|field| field.name.clone());
        let own = of_ipv4(name);
        let number = own
            .clone()
            .or_else(|| of_ipv4(name.strip_suffix("_v6")?))
            .ok_or_else(|| {
                Error::Impossible(match is_c {
                    true => format!("{name}: C's histograms cannot hold addresses of 16 bytes: load rhist"),
                    false => format!("{name}: this needs a synthetic event, which cannot hold addresses of 16 bytes"),
                })
            })?;
        is_only_ipv4 |= own.is_none();
        let from = text.clone();
        text.clone_from(&number);
        Ok(Some((from, number)))
    };
    for (key, column) in numbers.keys.iter_mut().zip(&asked.measure.by) {
        if number_of(key)?.is_some() {
            plan.question.names.insert(column.clone(), NameKind::Ipv4);
        }
    }
    for save in &mut numbers.measure.save {
        if let Some((from, number)) = number_of(save)? {
            let place = |name: &str| format!("{{{name}}}");
            plan.question.worst = plan.question.worst.replace(&place(&from), &place(&number));
            plan.question.names.insert(number, NameKind::Ipv4);
        }
    }
    if is_only_ipv4 {
        let why = match is_c {
            true => "C's histograms cannot hold IPv6 addresses: load rhist",
            false => "this needs a synthetic event, which cannot hold IPv6 addresses",
        };
        plan.question.notes.push(format!(
            "addresses are those of IPv4; for IPv6 the kernel gives 0.0.0.0 or the like: {why}"
        ));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use crate::plan::Error;
    use crate::plan::Id;
    use crate::plan::Options;
    use crate::plan::Plan;
    use crate::plan::Step;
    use crate::question::Question;
    use crate::recipe::NameKind;
    use crate::recipe::Recipe;
    use crate::tracefs::Tracefs;

    /// A tracing directory of rhist or C with events of sockets.
    fn tracefs(is_rhist: bool) -> (tempfile::TempDir, Tracefs) {
        let root = tempfile::tempdir().unwrap();
        let add = |event: &str, fields: &[(&str, &str, u32)]| {
            let folder = root.path().join("events").join(event);
            std::fs::create_dir_all(&folder).unwrap();
            let name = event.rsplit('/').next().unwrap();
            let mut text = format!("name: {name}\nID: 1\nformat:\n");
            for (ty, name, size) in fields {
                text += &format!("\tfield:{ty} {name};\toffset:8;\tsize:{size};\tsigned:0;\n");
            }
            std::fs::write(folder.join("format"), text + "\nprint fmt: \"x\"\n").unwrap();
        };
        let addresses = [
            ("const void *", "skaddr", 8),
            ("int", "oldstate", 4),
            ("int", "newstate", 4),
            ("__u16", "sport", 2),
            ("__u16", "dport", 2),
            ("__u16", "protocol", 2),
            ("const char *", "caller", 8),
        ];
        let state = [&addresses[..], &[("__u8", "daddr[4]", 4), ("__u8", "daddr_v6[16]", 16)]];
        add("sock/inet_sock_set_state", &state.concat());
        add(
            "tcp/tcp_probe",
            &[("__u8", "daddr[28]", 28), ("__u16", "dport", 2), ("__u32", "srtt", 4)],
        );
        if is_rhist {
            std::fs::write(root.path().join("hist_stats"), "").unwrap();
        }
        let tracefs = Tracefs::at(root.path().to_owned()).unwrap();
        (root, tracefs)
    }

    fn plan(is_rhist: bool, recipe: &str, options: &Options) -> Result<Plan, Error> {
        let (_root, tracefs) = tracefs(is_rhist);
        let measure = Recipe::parse(recipe).unwrap().measure;
        Plan::new(&tracefs, Id::example(), &measure, options, Question::default())
    }

    fn by(keys: &[&str]) -> Options {
        Options {
            by: Some(keys.iter().map(|&key| key.to_owned()).collect()),
            ..Options::default()
        }
    }

    const LIFE: &str = include_str!("../../../recipes/tcplife.toml");
    const RTT: &str = include_str!("../../../recipes/tcprtt.toml");

    fn last(plan: &Plan) -> &str {
        plan.steps.last().unwrap().text()
    }

    #[test]
    fn addresses_of_both_families() {
        let life = plan(true, LIFE, &Options::default()).unwrap();
        assert!(
            last(&life).starts_with(
                "hist:keys=daddr_v6.ip,dport:on(skaddr):lat0_0=common_timestamp-$ts0:vals=(common_timestamp-$ts0).dist:\
                 onmax($lat0_0).save(daddr_v6.ip,dport,sport)"
            ),
            "{}",
            last(&life)
        );
        assert_eq!(life.question.notes, [""; 0]);
        assert_eq!(life.question.worst, "{daddr_v6.ip} port {dport}, here port {sport}");
        // The modifier is added automatically.
        for key in ["daddr_v6", "daddr_v6.ip", "address"] {
            let life = plan(true, LIFE, &by(&[key])).unwrap();
            assert!(last(&life).starts_with("hist:keys=daddr_v6.ip:"), "{}", last(&life));
        }
        let rtt = plan(true, RTT, &by(&["address"])).unwrap();
        assert!(last(&rtt).starts_with("hist:keys=daddr.ip:"), "{}", last(&rtt));
    }

    #[test]
    fn addresses_of_ipv4_where_there_are_no_others() {
        let slower = Options {
            slower: Some(1),
            ..Options::default()
        };
        for (is_rhist, options) in [(false, Options::default()), (true, slower)] {
            let life = plan(is_rhist, LIFE, &options).unwrap();
            let texts: Vec<_> = life.steps.iter().map(Step::text).collect();
            let text = texts.join("\n");
            assert!(!text.contains(".ip") && !text.contains("_v6"), "{text}");
            assert!(
                text.contains("keys=daddr,dport") && text.contains("u32 daddr"),
                "{text}"
            );
            assert_eq!(life.question.worst, "{daddr} port {dport}, here port {sport}");
            for column in ["address", "daddr"] {
                assert_eq!(life.question.names.get(column), Some(&NameKind::Ipv4), "{column}");
            }
            let [note] = &life.question.notes[..] else {
                panic!("{:?}", life.question.notes)
            };
            assert!(note.starts_with("addresses are those of IPv4; "), "{note}");
            assert_eq!(note.contains("load rhist"), !is_rhist);
        }
        let impossible = |recipe, options: &Options| plan(false, recipe, options).unwrap_err().to_string();
        assert_eq!(
            impossible(RTT, &by(&["address"])),
            "daddr: C's histograms cannot hold addresses of 16 bytes: load rhist"
        );
        assert!(plan(false, RTT, &by(&["port"])).is_ok());
        let filter = Options {
            filter: Some("daddr_v6.ip == ::1".to_owned()),
            ..Options::default()
        };
        assert!(impossible(LIFE, &filter).starts_with("--where \"daddr_v6.ip == ::1\": C's filters have no addresses"));
        assert!(plan(true, LIFE, &filter).is_ok());
    }

    #[test]
    fn strings_that_a_field_points_to() {
        let caller = by(&["caller.string"]);
        let direct = plan(true, LIFE, &caller).unwrap();
        assert!(
            last(&direct).starts_with("hist:keys=caller.string:on(skaddr)"),
            "{}",
            last(&direct)
        );
        let slower = Options {
            slower: Some(1),
            ..caller.clone()
        };
        let carried = plan(true, LIFE, &slower).unwrap();
        let texts: Vec<_> = carried.steps.iter().map(Step::text).collect();
        let text = texts.join("\n");
        for part in [
            "char[] caller; ",
            "keys=caller:vals=lat.dist",
            "($lat0_0,caller.string,",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let error = plan(false, LIFE, &caller).unwrap_err().to_string();
        assert!(
            error.starts_with("caller.string: C's histograms cannot follow a pointer"),
            "{error}"
        );
    }
}
