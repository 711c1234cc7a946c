//! What the process has used so far.

use std::{fs, time::Instant};

use serde::Serialize;
use serde_json::Value;

use crate::Failure;

/// One number that a subject measured.
#[derive(Serialize)]
pub struct Measure {
    unit: String,
    value: f64,
}

/// Start of a measurement.
pub struct Mark {
    time: Instant,
    cpu: f64,
}

impl Mark {
    pub fn now() -> Self {
        Self { time: Instant::now(), cpu: cpu_microseconds() }
    }

    /// Measures since the mark, per piece of work.
    pub fn measures(&self, pieces: usize, piece: &str) -> Vec<Measure> {
        let each = |microseconds: f64| microseconds / pieces as f64;
        let wall = self.time.elapsed().as_micros() as f64;
        vec![
            Measure { unit: format!("µs CPU/{piece}"), value: each(cpu_microseconds() - self.cpu) },
            Measure { unit: format!("µs/{piece}"), value: each(wall) },
            Measure { unit: "MiB peak RSS".into(), value: peak_rss() },
        ]
    }
}

/// Processor time of all threads, in microseconds.
pub fn cpu_microseconds() -> f64 {
    let mut used = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel fills the struct, which outlives the call.
    let used = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, used.as_mut_ptr());
        used.assume_init()
    };
    let of = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    of(used.ru_utime) + of(used.ru_stime)
}

/// Peak RSS in MiB.
fn peak_rss() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|text| text.trim().strip_suffix(" kB"));
    kib.and_then(|text| text.parse().ok()).unwrap_or(f64::NAN) / 1024.0
}

/// Prints a value for the process that started this one.
pub fn tell(value: &Value) -> Result<(), Failure> {
    println!("{}", serde_json::to_string(value)?);
    Ok(())
}
