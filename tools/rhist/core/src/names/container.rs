// SPDX-License-Identifier: MIT OR Apache-2.0

//! Containers, pods and units, by the paths of their control groups.
//!
//! Container runtimes and systemd create groups like these, and groups below them:
//!
//! ```text
//! /docker/ID                                         Docker and others that make groups themselves
//! /system.slice/docker-ID.scope                      made by systemd; also libpod-ID, crio-ID
//! /kubepods.slice/….slice/cri-containerd-ID.scope    Kubernetes with systemd
//! /kubepods/burstable/podUID/ID                      Kubernetes without systemd
//! /ecs/TASK/ID                                       Amazon ECS: ID may be HEX-DIGITS
//! /system.slice/ssh.service                          a unit of systemd
//! ```

use std::ffi::OsStr;
use std::path::Path;

/// Attribute with the identifier of a container.
pub const ID: &str = "container.id";

/// Attribute with the identifier of a pod.
pub const POD: &str = "k8s.pod.uid";

/// Digits of a container's identifier that people see, as Docker shows them.
const SHOWN: usize = 12;

/// Digits of a pod's identifier that people see: up to the first `-`.
const SHOWN_OF_POD: usize = 8;

/// Returns whether a field of this name holds the path of a control group, as in the events
/// `cgroup:…`.
pub fn is_path(field: &str) -> bool {
    matches!(field, "path" | "dst_path")
}

/// Identifier of the innermost container in the path of a control group.
pub fn id(path: &str) -> Option<&str> {
    groups(path)?.rev().find_map(id_of_group)
}

/// Identifier of the pod in the path of a control group, with `-` between its parts.
pub fn pod(path: &str) -> Option<String> {
    groups(path)?.rev().find_map(pod_of_group)
}

/// The group of the innermost container that a control group belongs to; without one, of its unit
/// of systemd; otherwise the group itself. All of these are paths.
pub fn whole(path: &str) -> &str {
    let group = |is_it: fn(&str) -> bool| {
        let mut groups = Path::new(path).ancestors();
        let group = groups.find(|group| group.file_name().and_then(OsStr::to_str).is_some_and(is_it))?;
        group.to_str()
    };
    let container = group(|name| id_of_group(name).is_some());
    container.or_else(|| group(is_unit)).unwrap_or(path)
}

/// Name for people of a group that [`whole`] has returned: the first digits of its pod and
/// container; or its unit of systemd. `None`: it has only its path.
pub fn label(path: &str) -> Option<String> {
    if let Some(id) = id(path) {
        let id = match is_ecs(id) {
            true => id,
            false => id.get(..SHOWN)?,
        };
        return Some(match pod(path) {
            Some(pod) => format!("{}/{id}", pod.get(..SHOWN_OF_POD)?),
            None => id.to_owned(),
        });
    }
    // Units of a user's manager may be called as others are.
    let (slices, unit) = path.strip_prefix('/')?.rsplit_once('/')?;
    let is_of_system = slices.split('/').all(|group| group.ends_with(".slice"));
    (is_of_system && is_unit(unit)).then(|| unit.to_owned())
}

/// The names of the groups in a path, the outermost first. `None` without a path.
fn groups(path: &str) -> Option<impl DoubleEndedIterator<Item = &str>> {
    Some(path.strip_prefix('/')?.split('/'))
}

/// Identifier of a container in the name of its group. `libpod-conmon-ID.scope` is the group of the
/// program that watches it.
fn id_of_group(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".scope").unwrap_or(name);
    if is_ecs(name) {
        return Some(name);
    }
    let (runtime, id) = name.rsplit_once(['-', ':']).unwrap_or(("", name));
    (id.len() == 64 && is_hex(id) && !runtime.ends_with("-conmon")).then_some(id)
}

fn is_ecs(name: &str) -> bool {
    match name.split_once('-') {
        Some((task, number)) => {
            task.len() == 32 && is_hex(task) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => false,
    }
}

/// Identifier of a pod in the name of its group: `podUID`, or `kubepods-…-podUID.slice`, in which
/// systemd's driver has `_` for `-`. Static pods have a hash instead of a UUID.
fn pod_of_group(name: &str) -> Option<String> {
    let id = match name.strip_suffix(".slice") {
        Some(name) => name.rsplit('-').next()?,
        None => name,
    };
    let id = id.strip_prefix("pod")?.replace('_', "-");
    let digits = id.replace('-', "");
    (digits.len() == 32 && is_hex(&digits)).then_some(id)
}

/// Returns whether a group is a unit of systemd that runs something: a slice only has groups below
/// it.
fn is_unit(name: &str) -> bool {
    [".service", ".scope", ".socket", ".mount", ".swap"]
        .iter()
        .any(|kind| name.len() > kind.len() && name.ends_with(kind))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "6a6ccdfd-1f45-4e33-9d1c-0a1b2c3d4e5f";

    /// Each row: the group, a group below it, and what people call it.
    #[test]
    fn groups_of_containers() {
        let hex = "1f0ce8a65b3d".repeat(6)[..64].to_owned();
        let of_systemd = UID.replace('-', "_");
        let short = "1f0ce8a65b3d";
        let of_pod = format!("6a6ccdfd/{short}");
        for (group, below, name) in [
            (format!("/docker/{hex}"), "", short),
            (format!("/docker/{hex}"), "/system.slice/cron.service", short),
            (format!("/system.slice/docker-{hex}.scope"), "", short),
            (format!("/system.slice/docker-{hex}.scope"), "/init.scope", short),
            (format!("/machine.slice/libpod-{hex}.scope"), "/container", short),
            (
                format!("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{hex}.scope"),
                "",
                short,
            ),
            (format!("/machine.slice/crio-{hex}.scope"), "", short),
            (
                format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{of_systemd}.slice/cri-containerd-{hex}.scope"
                ),
                "",
                &of_pod,
            ),
            (
                format!("/kubepods.slice/kubepods-pod{of_systemd}.slice/crio-{hex}.scope"),
                "/nested",
                &of_pod,
            ),
            (format!("/kubepods/burstable/pod{UID}/{hex}"), "", &of_pod),
            (format!("/kubepods/pod{UID}/{hex}"), "/a/b", &of_pod),
            (
                format!("/system.slice/containerd.service/kubepods-pod{of_systemd}.slice:cri-containerd:{hex}"),
                "",
                short,
            ),
        ] {
            let path = format!("{group}{below}");
            assert_eq!(id(&path), Some(hex.as_str()), "{path}");
            assert_eq!(whole(&path), group, "{path}");
            assert_eq!(label(&group).as_deref(), Some(name), "{path}");
        }
        let ecs = "/ecs/55091c13/55091c13b8cf4801b527f8601742204a-2387194856";
        assert_eq!(id(ecs), Some("55091c13b8cf4801b527f8601742204a-2387194856"));
        assert_eq!(label(ecs).as_deref(), id(ecs));
        // A container within another one.
        let inner = "2e".repeat(32);
        let nested = format!("/docker/{hex}/docker/{inner}/x");
        assert_eq!(id(&nested), Some(inner.as_str()));
        assert_eq!(whole(&nested), format!("/docker/{hex}/docker/{inner}"));
        let conmon = format!("/machine.slice/libpod-conmon-{hex}.scope");
        assert_eq!((id(&conmon), whole(&conmon)), (None, conmon.as_str()));
        for other in [
            "/",
            "",
            "/user.slice/user-1000.slice/session-2.scope",
            "/system.slice/ssh.service",
            "docker",
        ] {
            assert_eq!(id(other), None, "{other}");
        }
        assert_eq!(id(&format!("/docker/{}", hex.to_uppercase())), None);
        assert_eq!(id(&format!("/docker/{}", &hex[1..])), None);
    }

    #[test]
    fn groups_of_pods() {
        for (path, uid) in [
            (format!("/kubepods/besteffort/pod{UID}"), Some(UID)),
            (format!("/kubepods/besteffort/pod{UID}/x"), Some(UID)),
            (
                format!("/kubepods.slice/kubepods-besteffort-pod{}.slice", UID.replace('-', "_")),
                Some(UID),
            ),
            (
                format!(
                    "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{}.slice",
                    UID.replace('-', "_")
                ),
                Some(UID),
            ),
            ("/kubepods/podnone".to_owned(), None),
            ("/pod.service".to_owned(), None),
            ("idle".to_owned(), None),
        ] {
            assert_eq!(pod(&path).as_deref(), uid, "{path}");
        }
        // Static pods.
        let hash = "0123456789abcdef".repeat(2);
        assert_eq!(pod(&format!("/kubepods/pod{hash}")), Some(hash));
    }

    #[test]
    fn groups_of_units() {
        for (path, group, name) in [
            (
                "/system.slice/ssh.service",
                "/system.slice/ssh.service",
                Some("ssh.service"),
            ),
            (
                "/system.slice/ssh.service/sub",
                "/system.slice/ssh.service",
                Some("ssh.service"),
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/a.service",
                "/user.slice/user-1000.slice/user@1000.service/app.slice/a.service",
                None,
            ),
            (
                "/user.slice/user-1000.slice/session-2.scope",
                "/user.slice/user-1000.slice/session-2.scope",
                Some("session-2.scope"),
            ),
            ("/system.slice", "/system.slice", None),
            ("/init.scope", "/init.scope", None),
            ("/", "/", None),
            ("/a/b", "/a/b", None),
            ("/.service", "/.service", None),
            ("idle", "idle", None),
            ("<gone>", "<gone>", None),
            ("", "", None),
        ] {
            assert_eq!((whole(path), label(group).as_deref()), (group, name), "{path}");
        }
    }
}
