//! Images of the disk at the moments at which mu's database may have changed, and what stood in it then.
//!
//! Images are taken while the machine runs and read when it no longer does: whoever opens a database draws from the
//! randomness that all SQLite of this process shares, and looking may not change the run.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::disk::{Disk, DiskOp, Kind};
use crate::kernel::Machine;
use crate::oracle::rows::{EffectRow, HostRow, Rows};
use crate::trace::{Change, Moment, Row, compared};

/// Takes images once it is asked to. A clone is the same one.
#[derive(Clone, Default)]
pub(super) struct Journal(Rc<State>);

#[derive(Default)]
struct State {
    asked: Cell<bool>,
    /// The number of events before a change of which there is no image yet.
    changed: Cell<Option<u64>>,
    images: RefCell<Vec<(u64, Disk)>>,
}

impl Journal {
    /// From here on images are taken.
    pub(super) fn keep(&self) {
        self.0.asked.set(true);
    }

    /// An operation is about to take place, and is the last event.
    pub(super) fn operation(&self, machine: &Machine, op: &DiskOp) {
        self.look(machine);
        if matches!(op.kind, Kind::Write | Kind::Truncate | Kind::Delete) {
            self.change(machine);
        }
    }

    /// Files are about to be changed, or were just now.
    pub(super) fn change(&self, machine: &Machine) {
        if self.0.asked.get() {
            self.0.changed.set(Some(machine.event_count()));
        }
    }

    /// Takes an image if files have changed since the last one.
    pub(super) fn look(&self, machine: &Machine) {
        if let Some(place) = self.0.changed.take() {
            self.0.images.borrow_mut().push((place, machine.disk().fork()));
        }
    }

    /// The moments at which mu's rows were others than before. `read` is `None` for an image whose database cannot be read.
    pub(super) fn moments(&self, read: impl Fn(&Disk) -> Option<Rows>) -> Vec<Moment> {
        let mut moments: Vec<Moment> = Vec::new();
        for (place, disk) in self.0.images.take() {
            let Some(rows) = read(&disk) else { continue };
            let before = moments.last().map_or(&[][..], |moment| &moment.rows);
            let rows = compared(before, told(&rows));
            if rows.iter().any(|row| row.change != Change::Same) {
                moments.push(Moment { place: place as usize, rows });
            }
        }
        moments
    }
}

fn told(rows: &Rows) -> Vec<Row> {
    let row = |about, name: &str, says| Row { about, name: name.to_owned(), says, change: Change::New };
    let plugins =
        rows.plugins.iter().map(|one| row("plugin", &one.name, format!("instance {}", one.instance)));
    let hosts = rows.hosts.iter().map(|one| row("host", &one.name, host(one)));
    let effects = rows.effects.iter().map(|one| row("effect", &one.key, effect(one)));
    let verdicts = rows.verdicts.iter();
    let verdicts = verdicts.map(|one| row("verdict", &one.key, format!("an operator's, about {}", one.host)));
    effects.chain(hosts).chain(plugins).chain(verdicts).collect()
}

fn host(HostRow { plugin, instance, state, handle, .. }: &HostRow) -> String {
    let handle = handle.as_ref().map_or_else(String::new, |handle| format!("{handle} "));
    format!("{state}, {handle}of {plugin} ({instance})")
}

fn effect(EffectRow { method, plugin, instance, host, sends, .. }: &EffectRow) -> String {
    let ids: Vec<String> = sends.iter().map(|(id, ..)| id.to_string()).collect();
    let sends = match &ids[..] {
        [] => "no request yet".to_owned(),
        [id] => format!("request {id}"),
        ids => format!("requests {}", ids.join(", ")),
    };
    format!("{method} {host}, of {plugin} ({instance}), {sends}")
}
