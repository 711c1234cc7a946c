//! Rivals of Coracle that are written in Rust, each as the documentation of
//! kube-rs says. Every measure is one line of JSON, in the form of
//! `bench/support/bench.ts`.

mod follow;
mod reconcile;
mod usage;

use std::{env, error::Error};

/// Any error, which ends the program.
pub type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["reconcile", kubeconfig, _objects] => reconcile::run(kubeconfig, false).await,
        ["cleanup", kubeconfig, _objects] => reconcile::run(kubeconfig, true).await,
        ["follow", url, events] => follow::run(url, events.parse()?).await,
        _ => Err("usage: bench reconcile|cleanup KUBECONFIG OBJECTS | follow URL EVENTS".into()),
    }
}
