//! Many rows of mu's tables at once, such as its verbs write them, into a database in which the plugin that does nothing is
//! registered.

use std::fs;
use std::path::Path;

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::child;

/// A pid that no process has: the highest there can be.
const NOBODY: i64 = 4_194_304;
/// The parameters of a release, without their deadline.
const PARAMS: &str = r#"{"target":{"host":{"name":"h","handle":"vm-1","instance":"test"}},"key":"k"}"#;

/// The database of a stage.
pub struct Rows(Connection);

impl Rows {
    /// Opens it; `mu` has made it.
    ///
    /// # Panics
    /// When it has not.
    pub fn open(database: &Path) -> Rows {
        let connection = Connection::open(database).expect("a database");
        connection.execute_batch("PRAGMA synchronous = OFF").expect("it is no one's");
        Rows(connection)
    }

    /// Adds `count` plugins, each declared as the registered one is.
    ///
    /// # Panics
    /// When SQLite refuses.
    pub fn add_plugins(&self, count: u32) {
        let sql = "WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n)
            INSERT INTO plugins SELECT printf('p%05d', n), json_array('/opt/plugins/mu-plugin-' || printf('p%05d', n)),
                version, instance, seams, channel, schema_digest,
                json_set(declaration, '$.plugin.name', printf('p%05d', n)), added_at, declared_at
            FROM (SELECT n FROM n LIMIT ?1), plugins WHERE name = ?2";
        self.0.execute(sql, params![count, child::NAME]).expect("plugins");
    }

    /// Adds as many hosts that were added, and as many that were acquired and whose release has no definite answer; one of
    /// each to a plugin of [`Rows::add_plugins`].
    ///
    /// # Panics
    /// When SQLite refuses.
    pub fn add_hosts(&self, count: u32) {
        let sql = "INSERT INTO host_profiles SELECT 'f' || substr(name, 2), name, 'plugin:' || name || ':' || instance,
                'git -C {local} fetch {host}:{remote} HEAD', NULL, 1, added_at FROM plugins WHERE name GLOB 'p*' LIMIT ?1";
        self.0.execute(sql, [count]).expect("hosts that were added");
        let sql = "INSERT INTO hosts SELECT 'h' || substr(name, 2), name, instance, 'key-' || name, 'releasing', 'vm-' || name,
                '{}', NULL, NULL, NULL, NULL, added_at FROM plugins WHERE name GLOB 'p*' LIMIT ?1";
        self.0.execute(sql, [count]).expect("hosts that were acquired");
        self.add_effects("name GLOB 'h*'");
    }

    /// Opens the release of a host that is ready, as a `mu` leaves it that dies while the plugin is at it; the key of the
    /// effect is `release-` and the name.
    ///
    /// # Panics
    /// When there is no such host.
    pub fn open_release(&self, host: &str) {
        let sql = "UPDATE hosts SET state = 'releasing' WHERE name = ?1 AND state = 'ready'";
        assert_eq!(self.0.execute(sql, [host]).expect("a host"), 1, "{host} is ready");
        self.add_effects(&format!("name = '{host}'"));
    }

    /// An open release with one send for each of these hosts. All who had to do with it are gone, and were of this boot.
    fn add_effects(&self, hosts: &str) {
        let boot =
            fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("the kernel has an id for it");
        let digest: String = Sha256::digest(PARAMS).iter().map(|byte| format!("{byte:02x}")).collect();
        let sql = format!(
            "INSERT INTO effects (key, method, plugin, instance, host, params, params_sha256, writer_pid, writer_started,
                writer_boot, begun_at, begun_boot, begun_boottime_ms)
            SELECT 'release-' || name, 'host.release', plugin, instance, name, ?1, ?2, ?3, 7, ?4, since, ?4, 7 FROM hosts
            WHERE {hosts}"
        );
        self.0.execute(&sql, params![PARAMS, digest, NOBODY, boot.trim()]).expect("effects");
        let sql = format!(
            "INSERT INTO effect_sends SELECT 'release-' || name, 2, 1796000000000, ?1, 7, ?2, since FROM hosts
            WHERE {hosts}"
        );
        self.0.execute(&sql, params![NOBODY, boot.trim()]).expect("their sends");
    }
}
