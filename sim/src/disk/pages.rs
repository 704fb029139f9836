//! The bytes of one regular file, in copy-on-write pages.

use std::rc::Rc;

/// Bytes in a page of the simulated disk. SQLite's default page has the same size, so a page of the database is a
/// page of the disk.
pub(super) const PAGE: usize = 4096;

pub(super) type Page = Rc<[u8; PAGE]>;

/// The contents of a file. A clone shares every page; the first write to a shared page copies that page alone.
#[derive(Clone, Default)]
pub(super) struct Pages {
    len: u64,
    /// `None` is a page of zeros that nobody has written.
    pages: Vec<Option<Page>>,
}

impl Pages {
    /// A file with these bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Pages {
        let mut pages = Pages::default();
        pages.write(0, bytes);
        pages
    }

    /// The size in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// One page; `None` past the end, and for one that nobody has written.
    pub(super) fn page(&self, index: usize) -> Option<&Page> {
        self.pages.get(index)?.as_ref()
    }

    /// All bytes.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        self.head(u64::MAX)
    }

    /// The first `limit` bytes, or all.
    pub(super) fn head(&self, limit: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.len.min(limit) as usize];
        self.read(0, &mut bytes);
        bytes
    }

    /// Fills `buf` from `offset`; past the end with zeros. Returns how many bytes lay within the file.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let inside = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        buf[inside..].fill(0);
        for (page, within, span) in spans(offset, inside) {
            match self.pages.get(page).and_then(Option::as_ref) {
                Some(bytes) => {
                    let end = within + span.len();
                    buf[span].copy_from_slice(&bytes[within..end]);
                }
                None => buf[span].fill(0),
            }
        }
        inside
    }

    /// Writes at `offset`, growing the file when needed. A gap reads as zeros.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        if end > self.len {
            self.len = end;
            self.pages.resize(end.div_ceil(PAGE as u64) as usize, None);
        }
        for (page, within, span) in spans(offset, bytes.len()) {
            let bytes = &bytes[span];
            let slot = &mut self.pages[page];
            match slot {
                // A whole page replaces the shared one; nothing of the old is worth copying.
                Some(old) if bytes.len() < PAGE || Rc::strong_count(old) == 1 => {
                    Rc::make_mut(old)[within..within + bytes.len()].copy_from_slice(bytes);
                }
                _ => {
                    *slot = Some(match bytes.try_into() {
                        Ok(whole) => Rc::new(whole),
                        Err(_) => {
                            let mut fresh = [0; PAGE];
                            fresh[within..within + bytes.len()].copy_from_slice(bytes);
                            Rc::new(fresh)
                        }
                    });
                }
            }
        }
    }

    /// Cuts the file, or lets it grow with zeros.
    pub(super) fn truncate(&mut self, len: u64) {
        self.pages.resize(len.div_ceil(PAGE as u64) as usize, None);
        let rest = (len % PAGE as u64) as usize;
        // What was cut off must not come back when the file grows again.
        if len < self.len
            && rest != 0
            && let Some(Some(last)) = self.pages.last_mut()
        {
            Rc::make_mut(last)[rest..].fill(0);
        }
        self.len = len;
    }
}

/// Cuts `len` bytes at `offset` along the pages: page number, offset within the page, range of the caller's buffer.
fn spans(offset: u64, len: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % PAGE as u64) as usize;
        let take = (PAGE - within).min(len - done);
        let span = done..done + take;
        done += take;
        Some(((at / PAGE as u64) as usize, within, span))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_across_a_page_boundary_is_read_back() {
        let mut pages = Pages::default();
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * PAGE).collect();
        pages.write(PAGE as u64 - 7, &bytes);
        let mut back = vec![1; bytes.len()];
        assert_eq!(pages.read(PAGE as u64 - 7, &mut back), bytes.len());
        assert_eq!(back, bytes);
        assert_eq!(pages.len(), (4 * PAGE - 7) as u64);
    }

    #[test]
    fn a_gap_reads_as_zeros() {
        let mut pages = Pages::default();
        pages.write(2 * PAGE as u64, b"x");
        let mut back = [9; 3];
        assert_eq!(pages.read(PAGE as u64, &mut back), 3);
        assert_eq!(back, [0; 3]);
    }

    #[test]
    fn a_read_past_the_end_is_short_and_zero_filled() {
        let mut back = [9; 5];
        assert_eq!(Pages::from_bytes(b"abc").read(1, &mut back), 2);
        assert_eq!(&back, b"bc\0\0\0");
        assert_eq!(Pages::from_bytes(b"abc").read(7, &mut back), 0);
    }

    #[test]
    fn bytes_cut_off_do_not_return_when_the_file_grows() {
        let mut pages = Pages::from_bytes(b"secret");
        pages.truncate(2);
        pages.truncate(6);
        assert_eq!(pages.to_vec(), b"se\0\0\0\0");
    }

    #[test]
    fn a_write_leaves_the_clone_as_it_was() {
        let mut pages = Pages::from_bytes(&[1; 2 * PAGE]);
        let before = pages.clone();
        pages.write(0, &[2; PAGE]);
        pages.write(PAGE as u64, &[3; 5]);
        assert_eq!(before.to_vec(), vec![1; 2 * PAGE]);
        assert_eq!(pages.to_vec()[PAGE - 1..PAGE + 6], [2, 3, 3, 3, 3, 3, 1]);
    }
}
