//! What a verb costs that is about one row: among many others as much as alone. Counted are the steps of SQLite's machine.

use serde_json::json;

use crate::testing::FakeOs;
use crate::testing::cloud::Cloud;

/// How many the statements below add of each.
const OTHERS: u64 = 300;

const PLUGINS_AND_PROFILES: &str = "
    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300)
    INSERT INTO plugins SELECT 'p' || n, argv, version, instance, seams, channel, schema_digest, declaration, added_at,
        declared_at FROM n, plugins WHERE name = 'cloud';
    INSERT INTO host_profiles SELECT 'f' || name, name, 'plugin:' || name || ':' || instance, NULL, NULL, 1, added_at
        FROM plugins WHERE name <> 'cloud';";

const HOSTS_AND_EFFECTS: &str = "
    INSERT INTO hosts SELECT 'h' || p.name, p.name, h.instance, h.key || p.name, state, handle, params, deadline_at,
        idle_reclaim_ms, max_jobs, reason, since FROM plugins p, hosts h WHERE p.name <> 'cloud';
    INSERT INTO effects (key, method, plugin, instance, host, params, params_sha256, writer_pid, writer_started, writer_boot,
        begun_at, begun_boot, begun_boottime_ms)
        SELECT h.key, method, h.plugin, h.instance, h.name, e.params, params_sha256, writer_pid, writer_started,
        writer_boot, begun_at, begun_boot, begun_boottime_ms FROM hosts h, effects e WHERE h.name <> 'box';
    INSERT INTO effect_sends SELECT e.key, request_id, deadline, pgid, started, boot, at
        FROM effects e, effect_sends WHERE e.plugin <> 'cloud';";

/// The steps of each verb, with its words. They leave the rows as they are.
fn steps(os: &FakeOs, key: &str) -> Vec<(String, u64)> {
    let verbs = [
        "plugin show cloud",
        "plugin check cloud",
        "host add far --plugin cloud",
        "host show far",
        "host check far",
        "host rm far",
        "host show box",
        "effect show KEY",
        "effect resolve KEY",
        "effect list",
    ];
    let count = |verb: &str| {
        let words: Vec<String> = verb.split(' ').map(|word| word.replace("KEY", key)).collect();
        let before = os.steps();
        let ran = os.run(&words);
        assert_eq!(ran.exit, if verb == "effect resolve KEY" { 4 } else { 0 }, "{verb}: {ran:?}");
        (verb.to_owned(), os.steps() - before)
    };
    verbs.into_iter().map(count).collect()
}

/// Where a search ends is a matter of a step or two; a look at each of the others would be one for each at least.
fn no_scan(now: &[(String, u64)], alone: &[(String, u64)]) {
    for ((verb, now), (_, alone)) in now.iter().zip(alone) {
        assert!(*now < alone + OTHERS / 2, "{verb}: {now} steps, and {alone} alone");
    }
}

#[test]
fn a_verb_that_is_about_one_row_does_not_look_at_the_others() {
    let cloud = Cloud::new(json!({"lookup": true, "fenceKey": true}));
    cloud.os.run(&["host", "acquire", "box", "--provider", "cloud"]);
    let key = cloud.os.run(&["effect", "list", "--json"]).json()["data"]["effects"][0]["key"].clone();
    // Whoever runs next is another process, and the one that began the effect lives.
    let (os, key) = (cloud.os.as_process(600, 50), key.as_str().unwrap());
    cloud.serves(|line| match line["method"].as_str() {
        Some("link.exec") => {
            Some(json!({"result": {"exitCode": 0, "stdout": "", "stderr": "", "partial": false}}))
        }
        _ => Some(json!({"result": []})),
    });
    let alone = steps(&os, key);
    cloud.os.connection().execute_batch(PLUGINS_AND_PROFILES).unwrap();
    no_scan(&steps(&os, key), &alone);
    cloud.os.connection().execute_batch(HOSTS_AND_EFFECTS).unwrap();
    assert_eq!((cloud.count("effects"), cloud.count("effect_sends")), (301, 301));
    let (_, about_one) = alone.split_last().unwrap();
    no_scan(&steps(&os, key), about_one);
}
