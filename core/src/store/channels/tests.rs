use super::*;
use crate::store::{Missing, Store};
use crate::testing::{FakeOs, open, process};

fn name(name: &str) -> HostName {
    name.parse().unwrap()
}

async fn took(store: &Store<FakeOs>, os: &FakeOs, host: &str, max: u32) -> Taken {
    let taken: Result<Taken, StoreError> = store.write(|tx| take(tx, os, &name(host), max)).await;
    taken.unwrap()
}

fn held(taken: Taken) -> Held {
    match taken {
        Taken::Yes(held) => held,
        Taken::No(holders) => panic!("held by {holders:?}"),
    }
}

fn others(os: &FakeOs, rows: &[(&str, ProcessId)]) {
    for (host, ProcessId { pid, started, boot }) in rows {
        let sql = "INSERT INTO host_channels (host, pid, started, boot, since) VALUES (?1, ?2, ?3, ?4, 0)";
        os.connection().execute(sql, params![host, pid.0, started.cast_signed(), boot]).unwrap();
    }
}

/// SEAM-04
#[test]
fn a_host_has_no_more_channels_than_it_is_given_and_a_freed_one_is_taken_again() {
    let os = FakeOs::new();
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        let first = held(took(&store, &os, "dock", 2).await);
        held(took(&store, &os, "dock", 2).await);
        let mu = os.env().pid;
        assert_eq!(took(&store, &os, "dock", 2).await, Taken::No(vec![mu, mu]));
        held(took(&store, &os, "quay", 1).await); // another host
        let freed: Result<(), StoreError> = store.write(|tx| free(tx, &first)).await;
        freed.unwrap();
        held(took(&store, &os, "dock", 2).await);
        assert_eq!(took(&store, &os, "dock", 2).await, Taken::No(vec![mu, mu]));
    });
}

///
#[test]
fn a_holder_counts_while_exactly_that_process_lives() {
    let os = FakeOs::new();
    os.lives(process(70, 1));
    os.lives(process(71, 2));
    os.lives(process(72, 3));
    os.block_on(async { drop(open(&os, Missing::Create).await) });
    let stopped = process(70, 1);
    let gone = process(69, 1);
    let used_again = process(71, 1);
    let before_the_reboot = ProcessId { boot: "another".into(), ..process(72, 3) };
    others(&os, &[("dock", stopped), ("dock", gone), ("dock", used_again), ("dock", before_the_reboot)]);
    os.block_on(async {
        let store = open(&os, Missing::Create).await;
        assert_eq!(took(&store, &os, "dock", 1).await, Taken::No(vec![Pid(70)]));
        let rows: i64 =
            os.connection().query_row("SELECT count(*) FROM host_channels", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 1, "rows of holders that are gone stay");
        os.ends(Pid(70));
        held(took(&store, &os, "dock", 1).await);
    });
}
