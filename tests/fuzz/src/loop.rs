//! Runs the fuzz targets without a fuzzer, with a given number of seeded mutations of a corpus: `cargo run --release
//! --bin loop -- kernels_read_bytes 1000000 [seed]`. A panic message contains the seed and the number of the execution.

mod target;

use std::path::Path;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "kernels_read_bytes".to_owned());
    let (_, target) = target::ALL.into_iter().find(|(known, _)| *known == name).expect("the name of a target");
    let mut arguments = arguments.map(|argument| argument.parse::<u64>().expect("a number"));
    let executions = arguments.next().unwrap_or(100_000);
    let seed = arguments.next().unwrap_or(1);
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(&name);
    let mut files: Vec<_> =
        std::fs::read_dir(&dir).expect("the corpus").map(|file| file.expect("a file").path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).expect("a file that can be read")).collect();
    assert!(!corpus.is_empty(), "no corpus in {}", dir.display());
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for execution in 0..executions {
        let input = mutate(&corpus, &mut random);
        let result = std::panic::catch_unwind(|| target(&input));
        if result.is_err() {
            let file = std::env::temp_dir().join(format!("crash-{name}-{seed}-{execution}"));
            let _ = std::fs::write(&file, &input);
            panic!("execution {execution} of seed {seed}: {}", file.display());
        }
    }
    println!("{name}: {executions} executions of seed {seed}, {} files in the corpus: no crash", corpus.len());
}

/// An xorshift64 generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).expect("64 bits") % end.max(1)
    }
}

/// Boundary values for lengths and offsets.
const NUMBERS: [u64; 12] = [0, 1, 7, 8, 15, 16, 63, 64, 0xff, 0xffff, 0xffff_ffff, u64::MAX];

fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(8) {
        if input.is_empty() {
            return input;
        }
        let at = random.below(input.len());
        match random.below(9) {
            0 => input[at] ^= 1 << random.below(8),
            1 => input[at] = u8::try_from(random.below(256)).expect("a byte"),
            2..=4 => {
                let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)];
                let at = if random.below(2) == 0 { at } else { at / width * width };
                for (byte, value) in input[at..].iter_mut().zip(&number[..width]) {
                    *byte = *value;
                }
            }
            5 => input.truncate(at),
            6 => {
                // Inserts a piece of another file.
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len());
                let length = random.below(300.min(other.len() - from) + 1);
                input.splice(at..at, other[from..from + length].iter().copied());
            }
            7 => {
                let length = random.below(200.min(input.len() - at) + 1);
                input.drain(at..at + length);
            }
            _ => {
                // Overwrites a part with another part of the same file.
                let to = random.below(input.len());
                let length = random.below(64).min(input.len() - at).min(input.len() - to);
                input.copy_within(at..at + length, to);
            }
        }
    }
    input
}
