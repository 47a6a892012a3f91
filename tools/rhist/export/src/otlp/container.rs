// SPDX-License-Identifier: MIT OR Apache-2.0

//! Finds containers by the paths of their control groups.

/// Attribute with the identifier of a container.
pub const ID: &str = "container.id";

/// Returns whether a field of this name holds the path of a control group, as in the events
/// `cgroup:…`.
pub fn is_path(field: &str) -> bool {
    matches!(field, "path" | "dst_path")
}

/// Identifier of the container in the path of a control group. Container runtimes create groups
/// like these, and groups below them:
///
/// ```text
/// /docker/ID                                         Docker and others that make groups themselves
/// /system.slice/docker-ID.scope                      made by systemd; also libpod-ID, crio-ID
/// /kubepods.slice/….slice/cri-containerd-ID.scope    Kubernetes with systemd
/// /kubepods/burstable/podUID/ID                     Kubernetes without systemd
/// /ecs/TASK/ID                                       Amazon ECS: ID may be HEX-DIGITS
/// ```
pub fn id(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.rsplit('/').find_map(of_group)
}

/// Identifier in the name of a single group.
fn of_group(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".scope").unwrap_or(name);
    if is_ecs(name) {
        return Some(name);
    }
    let id = name.rsplit(['-', ':']).next()?;
    (id.len() == 64 && is_hex(id)).then_some(id)
}

fn is_ecs(name: &str) -> bool {
    match name.split_once('-') {
        Some((task, number)) => {
            task.len() == 32 && is_hex(task) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => false,
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_containers() {
        let hex = "1f0ce8a65b3d".repeat(6)[..64].to_owned();
        for path in [
            format!("/docker/{hex}"),
            format!("/system.slice/docker-{hex}.scope"),
            format!("/machine.slice/libpod-{hex}.scope/container"),
            format!(
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-{hex}.scope"
            ),
            format!("/kubepods/burstable/pod2a3f/{hex}"),
            format!("/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{hex}"),
        ] {
            assert_eq!(id(&path), Some(hex.as_str()), "{path}");
        }
        let ecs = "/ecs/55091c13/55091c13b8cf4801b527f8601742204a-2387194856";
        assert_eq!(id(ecs), Some("55091c13b8cf4801b527f8601742204a-2387194856"));
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
}
