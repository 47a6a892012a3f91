// SPDX-License-Identifier: GPL-2.0

//! Internet addresses in records: bytes in network order.

use core::{
    net::{
        IpAddr,
        Ipv4Addr,
        Ipv6Addr, //
    },
    str, //
};

use super::{
    EventField,
    FilterType,
    Record, //
};

/// Bytes of an IPv4 address.
pub const V4: usize = 4;

/// Bytes of an IPv6 address, which may be a mapped IPv4 address: `::ffff:192.0.2.1`.
pub const V6: usize = 16;

/// Bytes of a `struct sockaddr_in6`, or of a `struct sockaddr_in` with room for one.
const SOCKADDR: usize = 28;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// Types of fields that refer to a socket address (`__sockaddr()`).
const DATA_LOCS: [&[u8]; 3] = [
    b"__data_loc u8[]",
    b"__data_loc __u8[]",
    b"__data_loc unsigned char[]",
];

/// An address in a record; each variant has the offset of its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressField {
    /// An IPv4 address.
    V4(u32),
    /// An IPv6 address.
    V6(u32),
    /// A socket address.
    Socket(u32),
    /// A socket address behind a `__data_loc` field.
    DataLoc(u32),
}

impl AddressField {
    /// The address in `field`. `None` if fields of this type hold no address.
    pub fn new(field: &EventField) -> Option<Self> {
        let is_bytes = match field.filter {
            FilterType::Other => true,
            // C treats these as strings.
            FilterType::StaticString => field.type_.starts_with(b"unsigned char["),
            _ => false,
        };
        Some(match field.size as usize {
            _ if !is_bytes => return None,
            _ if DATA_LOCS.contains(&&*field.type_) => Self::DataLoc(field.offset),
            // The field refers to other dynamic data.
            _ if field.type_.starts_with(b"__data_loc ")
                || field.type_.starts_with(b"__rel_loc ") =>
            {
                return None
            }
            V4 if !field.signed => Self::V4(field.offset),
            V6 => Self::V6(field.offset),
            SOCKADDR => Self::Socket(field.offset),
            _ => return None,
        })
    }

    /// Reads it, an IPv4 address as a mapped one. Any context.
    #[inline]
    pub fn read(self, record: Record<'_>) -> [u8; V6] {
        match self {
            Self::V4(at) => mapped(record.bytes(at as usize, V4)),
            Self::V6(at) => {
                let bytes = record.bytes(at as usize, V6).first_chunk();
                bytes.copied().unwrap_or_default()
            }
            Self::Socket(at) => of_socket(record.bytes(at as usize, SOCKADDR)),
            Self::DataLoc(at) => of_socket(record.data_loc(at)),
        }
    }

    /// The offset of its field.
    pub fn offset(self) -> u32 {
        match self {
            Self::V4(at) | Self::V6(at) | Self::Socket(at) | Self::DataLoc(at) => at,
        }
    }
}

/// The mapped address of an IPv4 address; `::` if bytes are missing.
#[inline]
fn mapped(v4: &[u8]) -> [u8; V6] {
    let mut address = [0; V6];
    if v4.len() == V4 {
        address[10..12].fill(0xff);
        address[12..].copy_from_slice(v4);
    }
    address
}

/// The address in a socket address; `::` for another family, or if bytes are missing.
#[inline]
fn of_socket(sockaddr: &[u8]) -> [u8; V6] {
    let family = sockaddr.first_chunk();
    match family.map_or(0, |&family| u16::from_ne_bytes(family)) {
        // Behind the family and the port.
        AF_INET => mapped(sockaddr.get(4..4 + V4).unwrap_or_default()),
        // Behind the family, the port, and the flow information.
        AF_INET6 => {
            let bytes = sockaddr.get(8..).and_then(|bytes| bytes.first_chunk());
            bytes.copied().unwrap_or_default()
        }
        _ => [0; V6],
    }
}

/// The address in the first `size` bytes of `bytes`. A mapped IPv4 address is returned as IPv4.
pub fn of_bytes(bytes: &[u8], size: usize) -> IpAddr {
    match size {
        V4 => Ipv4Addr::from(bytes.first_chunk::<V4>().copied().unwrap_or_default()).into(),
        _ => Ipv6Addr::from(bytes.first_chunk::<V6>().copied().unwrap_or_default()).to_canonical(),
    }
}

/// A network: the addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    one: [u8; V6],
    /// Number of bits at the end of an address that are ignored.
    rest: u8,
}

impl Network {
    /// Parses an address, or a network as `10.0.0.0/8` or `2001:db8::/32`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        // An IPv4 address is a mapped one, which begins with 96 fixed bits.
        let (address, before) = match address.parse().ok()? {
            IpAddr::V4(v4) => (v4.to_ipv6_mapped(), 96),
            IpAddr::V6(v6) => (v6, 0),
        };
        let rest = match bits {
            Some(bits) => (128u8 - before).checked_sub(bits)?,
            None => 0,
        };
        let one = address.octets();
        Some(Self { one, rest })
    }

    /// Returns whether the address is in the network. Any context.
    #[inline]
    pub fn contains(&self, address: [u8; V6]) -> bool {
        let differ = u128::from_be_bytes(address) ^ u128::from_be_bytes(self.one);
        differ.checked_shr(self.rest.into()).unwrap_or(0) == 0
    }
}
