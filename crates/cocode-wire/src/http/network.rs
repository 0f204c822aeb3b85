//! What kind of network an address belongs to. Pure: whether we may go there is decided elsewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of network an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Network {
    /// Everybody reaches it.
    Public,
    /// This machine.
    Loopback,
    /// A network of a house or a company: private, unique local, or shared by the customers of a
    /// carrier, as overlay networks use it.
    Site,
    /// The same cable: also where clouds tell a machine its secrets.
    LinkLocal,
    /// For benchmarks; some proxies on a machine answer every name with such an address.
    Benchmark,
    /// Nothing that could be connected to: unspecified, multicast, documentation, reserved.
    Nowhere,
}

impl Network {
    /// The network of an address. Addresses that carry another inside count as that one.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => match inner_v4(address) {
                Some(inner) => of_v4(inner),
                None => of_v6(address),
            },
        }
    }

    /// Whether only some reach it, who may have a reason to go there.
    pub fn is_private(self) -> bool {
        match self {
            Self::Site | Self::LinkLocal | Self::Benchmark => true,
            Self::Public | Self::Loopback | Self::Nowhere => false,
        }
    }
}

fn of_v4(address: Ipv4Addr) -> Network {
    match address.octets() {
        [127, ..] => Network::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Network::Site,
        [169, 254, ..] => Network::LinkLocal,
        [198, 18 | 19, ..] => Network::Benchmark,
        // This network, protocol assignments, documentation, the relays of 6to4, multicast, reserved.
        [0 | 224..=255, ..]
        | [192, 0, 0 | 2, _]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [192, 88, 99, _] => Network::Nowhere,
        _ => Network::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Network {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Network::Loopback,
        // Unique local, the older site-local, and translation within a site.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] => Network::Site,
        [0xfe80..=0xfebf, ..] => Network::LinkLocal,
        // Protocol assignments with Teredo and benchmarks among them, and documentation twice.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Network::Nowhere,
        [0x2000..=0x3fff, ..] => Network::Public,
        _ => Network::Nowhere,
    }
}

/// The address that is really meant: mapped, compatible, translated (NAT64, SIIT), tunneled (6to4).
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => octets(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn addresses_belong_to_the_networks_of_the_registries() {
        let cases = [
            (
                Network::Public,
                "8.8.8.8 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.1.0.0 \
                 198.17.255.255 198.20.0.0 223.255.255.255 2606:4700::1 2001:4860:4860::8888 \
                 2001:200::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1",
            ),
            (
                Network::Loopback,
                "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::127.0.0.1 ::ffff:0:127.0.0.1 \
                 64:ff9b::127.0.0.1 2002:7f00:1::1",
            ),
            (
                Network::Site,
                "10.0.0.0 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 fc00::1 \
                 fdff::1 fec0::1 64:ff9b:1::1 ::ffff:10.1.2.3 64:ff9b::192.168.1.1 2002:a00:1::",
            ),
            (
                Network::LinkLocal,
                "169.254.169.254 fe80::1 febf::1 ::ffff:169.254.169.254 2002:a9fe:a9fe::",
            ),
            (Network::Benchmark, "198.18.0.1 198.19.255.255"),
            (
                Network::Nowhere,
                "0.0.0.0 0.1.2.3 192.0.0.1 192.0.2.1 198.51.100.1 203.0.113.1 192.88.99.1 224.0.0.1 \
                 240.0.0.1 255.255.255.255 :: ::ffff:0.0.0.0 2001::1 2001:2::1 2001:db8::1 3fff::1 \
                 100::1 5f00::1 ff02::1 4000::1",
            ),
        ];
        for (network, addresses) in cases {
            for address in addresses.split(' ') {
                assert_eq!(Network::of(address.parse().unwrap()), network, "{address}");
            }
        }
    }
}
