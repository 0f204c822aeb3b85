//! The public half of a key on an elliptic curve, for files that hold the private half only (Java and
//! `openssl -no_public` write such), which ring does not take.
//!
//! The steps and the memory that they touch do not depend on the private number. Nobody has to trust
//! the outcome: ring checks that both halves belong together.

use zeroize::Zeroizing;

use super::der::Curve;

/// The point of a private number, uncompressed. Nothing, if the number is longer than the field.
pub(super) fn of(curve: Curve, private: &[u8]) -> Option<Vec<u8>> {
    match curve {
        Curve::P256 => Group::<4>::new(&P256).multiply(private),
        Curve::P384 => Group::<6>::new(&P384).multiply(private),
    }
}

/// The numbers of SEC 2 that define a curve `y² = x³ − 3x + b`, in hexadecimal.
struct Definition {
    prime: &'static str,
    b: &'static str,
    base: [&'static str; 2],
}

const P256: Definition = Definition {
    prime: "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff",
    b: "5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b",
    base: [
        "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296",
        "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
    ],
};

const P384: Definition = Definition {
    prime: concat!(
        "fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe",
        "ffffffff0000000000000000ffffffff"
    ),
    b: concat!(
        "b3312fa7e23ee7e4988e056be3f82d19181d9c6efe8141120314088f5013875a",
        "c656398d8a2ed19d2a85c8edd3ec2aef"
    ),
    base: [
        concat!(
            "aa87ca22be8b05378eb1c71ef320ad746e1d3b628ba79b9859f741e082542a38",
            "5502f25dbf55296c3a545e3872760ab7"
        ),
        concat!(
            "3617de4a96262c6f5d9e98bf9292dc29f8f41dbd289a147ce9da3113b5f0b8c0",
            "0a60b1ce1d7e819d7a431d7c90ea0e5f"
        ),
    ],
};

/// A number in words, the lowest first.
type Number<const N: usize> = [u64; N];

/// Numbers modulo a prime, in Montgomery's form: times 2^(64 N).
struct Field<const N: usize> {
    prime: Number<N>,
    /// −1/prime modulo 2^64.
    inverse: u64,
    one: Number<N>,
    /// What brings a number into this form.
    enter: Number<N>,
}

/// X, Y and Z of x = X/Z and y = Y/Z.
type Point<const N: usize> = [Number<N>; 3];

struct Group<const N: usize> {
    field: Field<N>,
    b: Number<N>,
    base: Point<N>,
}

impl<const N: usize> Group<N> {
    fn new(definition: &Definition) -> Self {
        let field = Field::new(from_hex(definition.prime));
        let enter = |text| field.multiply(&from_hex(text), &field.enter);
        let [x, y] = definition.base.map(enter);
        Self {
            b: enter(definition.b),
            base: [x, y, field.one],
            field,
        }
    }

    fn multiply(&self, private: &[u8]) -> Option<Vec<u8>> {
        let mut number = Zeroizing::new(private.to_vec());
        // Leading zeros may have been left out, or one added.
        while number.len() > N * 8 && number.first() == Some(&0) {
            number.remove(0);
        }
        if number.len() > N * 8 {
            return None;
        }
        let mut sum: Zeroizing<Point<N>> = Zeroizing::new([[0; N], self.field.one, [0; N]]);
        for byte in number.iter() {
            for bit in (0..8).rev() {
                let doubled = self.add(&sum, &sum);
                let added = self.add(&doubled, &self.base);
                let chosen = u64::from((byte >> bit) & 1).wrapping_neg();
                for coordinate in 0..3 {
                    for word in 0..N {
                        let (no, yes) = (doubled[coordinate][word], added[coordinate][word]);
                        sum[coordinate][word] = no ^ (chosen & (no ^ yes));
                    }
                }
            }
        }
        let [x, y, z] = &*sum;
        let inverse = self.field.invert(z);
        let mut point = vec![4];
        for coordinate in [x, y] {
            let value = self.field.multiply(coordinate, &inverse);
            let plain = self.field.multiply(&value, &from_word(1));
            point.extend(plain.iter().rev().flat_map(|word| word.to_be_bytes()));
        }
        Some(point)
    }

    /// The complete addition of Renes, Costello and Batina (2015, algorithm 4): there is no pair of
    /// points that it treats differently, not even equal ones.
    fn add(&self, left: &Point<N>, right: &Point<N>) -> Point<N> {
        let field = &self.field;
        let product = |one: usize, other: usize| {
            let left = field.add(&left[one], &left[other]);
            field.multiply(&left, &field.add(&right[one], &right[other]))
        };
        let [xx, yy, zz] = [0, 1, 2].map(|axis| field.multiply(&left[axis], &right[axis]));
        let xy = field.subtract(&product(0, 1), &field.add(&xx, &yy));
        let yz = field.subtract(&product(1, 2), &field.add(&yy, &zz));
        let xz = field.subtract(&product(0, 2), &field.add(&xx, &zz));
        let shift = field.triple(&field.subtract(&xz, &field.multiply(&self.b, &zz)));
        let (below, above) = (field.subtract(&yy, &shift), field.add(&yy, &shift));
        let zz3 = field.triple(&zz);
        let slope = field.subtract(&field.multiply(&self.b, &xz), &zz3);
        let slope = field.triple(&field.subtract(&slope, &xx));
        let tilt = field.subtract(&field.triple(&xx), &zz3);
        [
            field.subtract(&field.multiply(&xy, &above), &field.multiply(&yz, &slope)),
            field.add(
                &field.multiply(&above, &below),
                &field.multiply(&tilt, &slope),
            ),
            field.add(&field.multiply(&yz, &below), &field.multiply(&xy, &tilt)),
        ]
    }
}

impl<const N: usize> Field<N> {
    fn new(prime: Number<N>) -> Self {
        // Newton's iteration doubles the right bits of 1/prime: 1, 2, 4, … 64.
        let inverse = (0..6).fold(1_u64, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(prime[0].wrapping_mul(inverse)))
        });
        let mut field = Self {
            prime,
            inverse: inverse.wrapping_neg(),
            one: [0; N],
            enter: [0; N],
        };
        let shifted = |start| (0..64 * N).fold(start, |value, _| field.add(&value, &value));
        let one = shifted(from_word(1));
        let enter = shifted(one);
        (field.one, field.enter) = (one, enter);
        field
    }

    fn add(&self, left: &Number<N>, right: &Number<N>) -> Number<N> {
        let mut sum = [0; N];
        let mut carry = false;
        for word in 0..N {
            (sum[word], carry) = with_carry(left[word], right[word], carry);
        }
        self.reduced(&sum, carry)
    }

    fn triple(&self, value: &Number<N>) -> Number<N> {
        self.add(&self.add(value, value), value)
    }

    fn subtract(&self, left: &Number<N>, right: &Number<N>) -> Number<N> {
        let (mut difference, borrow) = minus(left, right);
        let mask = u64::from(borrow).wrapping_neg();
        let mut carry = false;
        for (word, prime) in difference.iter_mut().zip(self.prime) {
            (*word, carry) = with_carry(*word, prime & mask, carry);
        }
        difference
    }

    /// A number below twice the prime, brought below it.
    fn reduced(&self, value: &Number<N>, overflow: bool) -> Number<N> {
        let (less, borrow) = minus(value, &self.prime);
        let keep = (u64::from(borrow) & u64::from(!overflow)).wrapping_neg();
        std::array::from_fn(|word| less[word] ^ (keep & (less[word] ^ value[word])))
    }

    /// Montgomery's product: left · right / 2^(64 N).
    fn multiply(&self, left: &Number<N>, right: &Number<N>) -> Number<N> {
        let mut sum = [0; N];
        let mut top = 0_u64;
        for &factor in left {
            let mut carry = 0;
            for word in 0..N {
                (sum[word], carry) = multiply_add(factor, right[word], sum[word], carry);
            }
            let (high, overflow) = top.overflowing_add(carry);
            // Makes the lowest word zero, so that everything can move down by one.
            let multiple = sum[0].wrapping_mul(self.inverse);
            let (_zero, mut carry) = multiply_add(multiple, self.prime[0], sum[0], 0);
            for word in 1..N {
                (sum[word - 1], carry) = multiply_add(multiple, self.prime[word], sum[word], carry);
            }
            let (high, again) = high.overflowing_add(carry);
            sum[N - 1] = high;
            top = u64::from(overflow) + u64::from(again);
        }
        self.reduced(&sum, top != 0)
    }

    /// The power of prime − 2, which is the inverse.
    fn invert(&self, value: &Number<N>) -> Number<N> {
        let (exponent, _no_borrow) = minus(&self.prime, &from_word(2));
        let mut power = self.one;
        for bit in (0..64 * N).rev() {
            power = self.multiply(&power, &power);
            // The exponent is no secret.
            if (exponent[bit / 64] >> (bit % 64)) & 1 == 1 {
                power = self.multiply(&power, value);
            }
        }
        power
    }
}

fn with_carry(left: u64, right: u64, carry: bool) -> (u64, bool) {
    let (sum, one) = left.overflowing_add(right);
    let (sum, other) = sum.overflowing_add(u64::from(carry));
    (sum, one | other)
}

fn minus<const N: usize>(left: &Number<N>, right: &Number<N>) -> (Number<N>, bool) {
    let mut difference = [0; N];
    let mut borrow = false;
    for word in 0..N {
        let (less, one) = left[word].overflowing_sub(right[word]);
        let (less, other) = less.overflowing_sub(u64::from(borrow));
        (difference[word], borrow) = (less, one | other);
    }
    (difference, borrow)
}

/// left · right + one + other, as its low and its high word.
fn multiply_add(left: u64, right: u64, one: u64, other: u64) -> (u64, u64) {
    left.carrying_mul_add(right, one, other)
}

fn from_word<const N: usize>(word: u64) -> Number<N> {
    let mut number = [0; N];
    number[0] = word;
    number
}

/// Only for the definitions above.
fn from_hex<const N: usize>(text: &str) -> Number<N> {
    let mut number = [0; N];
    for (position, digit) in text.chars().rev().enumerate() {
        let digit = u64::from(digit.to_digit(16).unwrap_or_default());
        number[position / 16] |= digit << (position % 16 * 4);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::{Curve, of};

    fn hex(bytes: &[u8]) -> String {
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits
            .map(|digit| char::from_digit(digit.into(), 16).unwrap())
            .collect()
    }

    #[test]
    fn one_times_the_base_is_the_base() {
        let point = of(Curve::P256, &[1]).unwrap();
        let [x, y] = super::P256.base;
        assert_eq!(hex(&point), format!("04{x}{y}"));
        let point = of(Curve::P384, &[1]).unwrap();
        let [x, y] = super::P384.base;
        assert_eq!(hex(&point), format!("04{x}{y}"));
    }

    #[test]
    fn points_are_those_of_rfc_6979() {
        let private = [
            0xC9, 0xAF, 0xA9, 0xD8, 0x45, 0xBA, 0x75, 0x16, 0x6B, 0x5C, 0x21, 0x57, 0x67, 0xB1,
            0xD6, 0x93, 0x4E, 0x50, 0xC3, 0xDB, 0x36, 0xE8, 0x9B, 0x12, 0x7B, 0x8A, 0x62, 0x2B,
            0x12, 0x0F, 0x67, 0x21,
        ];
        assert_eq!(
            hex(&of(Curve::P256, &private).unwrap()),
            concat!(
                "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6",
                "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
            )
        );
    }

    #[test]
    fn numbers_may_have_more_zeros_but_not_more_digits() {
        let mut padded = vec![0; 40];
        padded.push(7);
        assert_eq!(of(Curve::P256, &padded), of(Curve::P256, &[7]));
        assert_eq!(of(Curve::P256, &[1; 33]), None);
    }
}
