//! Which lock stands for which conversation.

use super::LockKey;

#[test]
fn a_lock_is_the_first_and_the_last_eight_digits_of_an_id() {
    let key = |id: &str| {
        let LockKey { first, second } = LockKey::of(&id.parse().unwrap());
        (first.cast_unsigned(), second.cast_unsigned())
    };
    let id = "0f8fad5b-d9cb-469f-a165-70867728950e";
    assert_eq!(key(id), (0x0F8F_AD5B, 0x7728_950E));
    let id = "ffffffff-d9cb-469f-a165-7086ffffffff";
    assert_eq!(key(id), (u32::MAX, u32::MAX));
}
