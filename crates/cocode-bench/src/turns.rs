//! Who runs when: a balanced order of the clients, so that no place in it favors one of them.
//!
//! What ran before leaves its traces: warm or cold caches, threads awake or asleep, a processor
//! that had time to slow down. In an order that only repeats, each client follows the same other
//! one every time. Here the rounds are the rows of a Williams square instead: over a cycle, every
//! client takes every place equally often and follows every other one equally often. The row does
//! not say what its first client follows, so that one runs once before it, uncounted: over a cycle
//! every client then follows every one, itself included, equally often.

/// One run of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn<C> {
    pub(crate) client: C,
    /// Other turns warm up, or give the next one something to follow.
    pub(crate) is_counted: bool,
}

/// Rounds until the order is balanced: an odd number of clients needs each row backward as well.
pub(crate) const fn rounds_per_cycle(n_clients: usize) -> usize {
    if n_clients.is_multiple_of(2) {
        n_clients
    } else {
        2 * n_clients
    }
}

/// All turns for so many whole cycles, after one of each client to warm up.
pub(crate) fn schedule<C: Copy>(clients: &[C], n_cycles: usize) -> Vec<Turn<C>> {
    let uncounted = |client: &C| Turn {
        client: *client,
        is_counted: false,
    };
    let mut turns: Vec<Turn<C>> = clients.iter().map(uncounted).collect();
    for round in 0..n_cycles * rounds_per_cycle(clients.len()) {
        let row = row(clients, round);
        turns.extend(row.first().map(uncounted));
        turns.extend(row.into_iter().map(|client| Turn {
            client,
            is_counted: true,
        }));
    }
    turns
}

/// A row of the square: 0, 1, n-1, 2, n-2 and so on, each moved on by the number of the round.
fn row<C: Copy>(clients: &[C], round: usize) -> Vec<C> {
    let n_clients = clients.len();
    let zigzag = (0..n_clients).map(|place| {
        let step = place.div_ceil(2);
        if place.is_multiple_of(2) {
            n_clients - step
        } else {
            step
        }
    });
    let mut row: Vec<C> = zigzag
        .filter_map(|start| clients.get((start + round) % n_clients).copied())
        .collect();
    if round % rounds_per_cycle(n_clients) >= n_clients {
        row.reverse();
    }
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Turn, rounds_per_cycle, schedule};

    const CYCLES: usize = 2;

    fn clients(n_clients: usize) -> Vec<usize> {
        (0..n_clients).collect()
    }

    fn count<T: Ord>(seen: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
        let mut counts = BTreeMap::new();
        for one in seen {
            *counts.entry(one).or_default() += 1;
        }
        counts
    }

    /// Every pair of numbers below `n_clients`, each as often as the others.
    fn all_pairs(n_clients: usize, times: usize) -> BTreeMap<(usize, usize), usize> {
        clients(n_clients)
            .into_iter()
            .flat_map(|a| (0..n_clients).map(move |b| ((a, b), times)))
            .collect()
    }

    /// How often each pair comes in a cycle: once, or twice with the rows backward.
    fn times(n_clients: usize) -> usize {
        CYCLES * rounds_per_cycle(n_clients) / n_clients
    }

    #[test]
    fn every_client_takes_every_place_equally_often() {
        for n_clients in 2..=7 {
            let turns = schedule(&clients(n_clients), CYCLES);
            let counted: Vec<usize> = turns
                .iter()
                .filter(|turn| turn.is_counted)
                .map(|turn| turn.client)
                .collect();
            let places = counted
                .chunks(n_clients)
                .flat_map(|row| row.iter().copied().enumerate());
            assert_eq!(count(places), all_pairs(n_clients, times(n_clients)));
        }
    }

    #[test]
    fn every_client_follows_every_client_equally_often() {
        for n_clients in 2..=7 {
            let turns = schedule(&clients(n_clients), CYCLES);
            let followed = turns
                .windows(2)
                .filter(|pair| pair[1].is_counted)
                .map(|pair| (pair[0].client, pair[1].client));
            assert_eq!(count(followed), all_pairs(n_clients, times(n_clients)));
        }
    }

    #[test]
    fn all_warm_up_and_the_first_of_a_round_runs_once_before_it() {
        let shown: Vec<String> = schedule(&['a', 'b', 'c', 'd'], 1)
            .into_iter()
            .map(|Turn { client, is_counted }| {
                if is_counted {
                    client.to_string()
                } else {
                    format!("({client})")
                }
            })
            .collect();
        assert_eq!(
            shown.concat(),
            "(a)(b)(c)(d)(a)abdc(b)bcad(c)cdba(d)dacb".to_owned()
        );
    }
}
