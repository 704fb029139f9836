//! Plays one file.
fn main() {
    let file = std::env::args().nth(1).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let s = mu_sim::scenario::Scenario::parse(&file, &text, &|_| true).unwrap_or_else(|e| panic!("{e}"));
    let p = mu_sim::play::simulated(&s, true).unwrap();
    println!("{}", p.transcript.unwrap());
    for f in &p.findings { println!("! {f}"); }
    println!("{:?} {}", p.chain.map(|c| c.to_string()), p.events);
}
