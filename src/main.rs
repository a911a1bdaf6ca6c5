//! temporary
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let s = kvseam::scenario::file::load(std::path::Path::new(&path)).unwrap();
    let t = std::time::Instant::now();
    let run = kvseam::world::run(&s, std::path::Path::new(".")).unwrap();
    eprintln!("{:?}", t.elapsed());
    use kvseam::finding::Named;
    for (k, v) in run.metrics.iter() {
        println!("{} {}", k.name(), v);
    }
    for (k, v) in run.chances.iter() {
        println!("chance {} {}", k.name(), v);
    }
    for (k, v) in run.marks.iter().filter(|x| x.1 > 0) {
        print!("{}={} ", k.name(), v);
    }
    println!();
    for (c, k) in run.findings.iter() {
        println!("{} {} {:?}", c.name(), k.count, k.first[0]);
    }
    println!("{:016x} {}", run.digest, run.ended);
}
