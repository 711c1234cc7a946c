//! An operator of the kind Greeting of `bench/support/greeting.ts`, by the
//! controller of kube-rs.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    Api, Client, Config, CustomResource, ResourceExt,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        Controller, WatchStreamExt,
        controller::{self, Action},
        predicates, reflector, watcher,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

use crate::{
    Failure,
    usage::{cpu_microseconds, tell},
};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "bench.coracle.dev", version = "v1", kind = "Greeting", namespaced)]
#[kube(status = "GreetingStatus")]
pub struct GreetingSpec {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct GreetingStatus {
    text: Option<String>,
}

async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let text = Some(format!("Hello, {}.", greeting.spec.name));
    if greeting.status.as_ref().is_some_and(|status| status.text == text) {
        return Ok(Action::await_change());
    }
    let namespace = greeting.namespace().unwrap_or_default();
    let greetings = Api::<Greeting>::namespaced(Client::clone(&client), &namespace);
    let status = Patch::Apply(json!({
        "apiVersion": "bench.coracle.dev/v1",
        "kind": "Greeting",
        "status": GreetingStatus { text },
    }));
    let parameters = PatchParams::apply("kube-rs").force();
    greetings.patch_status(&greeting.name_any(), &parameters, &status).await?;
    Ok(Action::await_change())
}

fn on_error(_: Arc<Greeting>, error: &kube::Error, _: Arc<Client>) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_secs(1))
}

/// Runs until the input ends; answers each line of it with the usage so far.
pub async fn run(kubeconfig: &str) -> Result<(), Failure> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let (reader, writer) = reflector::store();
    let greetings = watcher(Api::<Greeting>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation, Default::default());
    let controller = Controller::for_stream(greetings, reader)
        .with_config(controller::Config::default().concurrency(10))
        .run(reconcile, on_error, Arc::new(client))
        .for_each(|_| async {});
    tokio::spawn(controller);
    let mut lines = BufReader::new(stdin()).lines();
    while lines.next_line().await?.is_some() {
        tell(&json!({ "cpu": cpu_microseconds(), "pid": std::process::id() }))?;
    }
    Ok(())
}
