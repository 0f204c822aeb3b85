//! Which log messages servers are asked for.

use cocode_testkit::{Gate, Message, Script, StdioServer};
use serde_json::json;

use crate::merged::house::{House, result};
use crate::support::{RawClient, Server};

fn program(house: &House) -> &StdioServer {
    match &house.servers[0] {
        Server::Stdio(server) => server,
        Server::Http(_) => panic!("a program"),
    }
}

async fn set_level(client: &mut RawClient, level: &str) {
    result(client, "logging/setLevel", json!({ "level": level })).await;
}

fn asked(run: u32, level: &'static str) -> impl Fn(&Message) -> bool {
    move |message| {
        message.run == run
            && message.is("logging/setLevel")
            && message.params() == json!({ "level": level })
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_asked_again() {
    let house = House::of(&[("a", Script::new())]).await;
    let server = program(&house);
    for (run, endpoint) in [house.view.all(), house.view.server("a").unwrap()]
        .into_iter()
        .enumerate()
    {
        let run = u32::try_from(run).unwrap() + 1;
        let mut client = house.raw_at(endpoint).await;
        result(&mut client, "tools/list", json!({})).await;
        set_level(&mut client, "warning").await;
        server.wait_for(asked(run, "warning")).await;
        server.kill();
        server.wait_for(asked(run + 1, "warning")).await;
    }
}

#[tokio::test]
async fn a_server_that_starts_later_is_asked_then() {
    let gate = Gate::new();
    let script = Script::new().on("initialize").hold(&gate).as_usual();
    let house = House::of(&[("a", script)]).await;
    let mut client = house.raw().await;
    set_level(&mut client, "debug").await;
    gate.open();
    program(&house).wait_for(asked(1, "debug")).await;
}

#[tokio::test]
async fn what_one_view_wants_is_not_lost_to_another() {
    let house = House::of(&[("a", Script::new())]).await;
    let server = program(&house);
    let other = house.view_of([house.servers[0].spec_as("a")]).await;
    let mut eager = house.raw_at(house.view.server("a").unwrap()).await;
    let mut calm = house.raw_at(other.server("a").unwrap()).await;
    set_level(&mut eager, "debug").await;
    set_level(&mut calm, "error").await;
    server
        .received()
        .wait_until(|all| all.iter().filter(|one| one.is("logging/setLevel")).count() == 2)
        .await;
    let received = server.received().all();
    let levels = received.iter().filter(|one| one.is("logging/setLevel"));
    let levels: Vec<_> = levels
        .map(|message| message.params()["level"].clone())
        .collect();
    assert_eq!(levels, ["debug", "debug"]);
}

#[tokio::test]
async fn what_takes_the_place_of_a_server_is_asked_as_it_was() {
    let (first, second) = (Script::new().stdio(), Script::new().stdio());
    let [first, second] = [Server::Stdio(first), Server::Stdio(second)];
    let house = House::of(&[]).await;
    house.view.apply([first.spec_as("a")]).await;
    let mut client = house.raw_at(house.view.server("a").unwrap()).await;
    set_level(&mut client, "critical").await;
    house.view.apply([second.spec_as("a")]).await;
    let Server::Stdio(second) = second else {
        panic!("a program");
    };
    second.wait_for(asked(1, "critical")).await;
}

#[tokio::test]
async fn a_server_is_asked_for_less_when_whoever_wanted_more_has_left() {
    for is_all in [true, false] {
        let house = House::of(&[("a", Script::new())]).await;
        let server = program(&house);
        let endpoint = || {
            let one = house.view.server("a").unwrap();
            if is_all { house.view.all() } else { one }
        };
        let mut calm = house.raw_at(endpoint()).await;
        let mut eager = house.raw_at(endpoint()).await;
        result(&mut calm, "tools/list", json!({})).await;
        set_level(&mut eager, "debug").await;
        set_level(&mut calm, "error").await;
        let n_errors = || server.received().count(asked(1, "error"));
        assert_eq!(n_errors(), 0, "somebody wants more");
        drop(eager);
        server.wait_for(asked(1, "error")).await;
        // Whoever never said what it wants hears what is usual.
        let mut eager = house.raw_at(endpoint()).await;
        set_level(&mut eager, "debug").await;
        drop(calm);
        drop(eager);
        server.wait_for(asked(1, "info")).await;
    }
}
