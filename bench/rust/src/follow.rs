//! A cache of Pods by the reflector of kube-rs.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    runtime::{WatchStreamExt, reflector, watcher},
};
use serde_json::json;
use tokio::io::{AsyncReadExt, stdin};

use crate::{
    Failure,
    usage::{Mark, tell},
};

/// Follows Pods, as the documentation of reflectors does. Its input is the
/// certificate of the server's authority; a second line of output comes when it
/// has seen so many events.
pub async fn run(url: &str, events: usize) -> Result<(), Failure> {
    let mut authority = String::new();
    stdin().read_to_string(&mut authority).await?;
    let mark = Mark::now();
    let mut config = Config::new(url.parse()?);
    if !authority.is_empty() {
        config.root_cert = Some(vec![pem::parse(authority)?.into_contents()]);
    }
    let pods = Api::<Pod>::all(Client::try_from(config)?);
    let (reader, writer) = reflector::store();
    let mut stream = watcher(pods, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .boxed();
    while let Some(event) = stream.try_next().await? {
        if matches!(event, watcher::Event::InitDone) {
            break;
        }
    }
    let size = reader.len();
    tell(&json!({ "size": size, "version": "", "measures": mark.measures(size, "object") }))?;
    if events == 0 {
        return Ok(());
    }
    let mark = Mark::now();
    let mut version = None;
    let mut seen = 0;
    while seen < events {
        match stream.try_next().await? {
            Some(watcher::Event::Apply(pod)) => {
                version = pod.metadata.resource_version;
                seen += 1;
            }
            Some(_) => {}
            None => return Err("the watch has ended".into()),
        }
    }
    tell(&json!({ "size": size, "version": version, "measures": mark.measures(events, "event") }))
}
