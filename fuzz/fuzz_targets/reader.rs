//! Bytes of a plugin's stdout in any chunks: nothing panics, and the chunking changes nothing.
//!
//! The first byte of the input is the size of the chunks.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu_protocol::envelope;
use mu_protocol::line::LineSplitter;

fn outcomes<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Result<String, String>> {
    let mut splitter = LineSplitter::new();
    let mut all = Vec::new();
    for mut chunk in chunks {
        while let Some(line) = splitter.next(&mut chunk) {
            match line {
                Ok(line) => all.push(match envelope::parse(line) {
                    Ok(message) => Ok(format!("{message:?}")),
                    Err(invalid) => Err(invalid.to_string()),
                }),
                Err(invalid) => {
                    all.push(Err(invalid.to_string()));
                    return all;
                }
            }
        }
    }
    all
}

fuzz_target!(|data: &[u8]| {
    let Some((size, bytes)) = data.split_first() else { return };
    let size = usize::from(*size).max(1);
    assert_eq!(outcomes(bytes.chunks(size)), outcomes(std::iter::once(bytes)));
});
