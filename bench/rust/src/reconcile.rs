//! An operator of the kind Greeting of `bench/support/greeting.ts`, by the
//! controller of kube-rs.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{
    Api, Client, Config, CustomResource, ResourceExt,
    api::{Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{
        Controller, Predicate, WatchStreamExt,
        controller::{self, Action},
        finalizer::{self, finalizer}, predicates, reflector, watcher,
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

/// Finalizer of an operator with cleanup.
const FINALIZER: &str = "greetings.bench.coracle.dev/finalizer";

struct Greeter {
    client: Client,
    /// Whether objects get a finalizer.
    cleanup: bool,
}

async fn greet(greeting: Arc<Greeting>, greetings: &Api<Greeting>) -> Result<Action, kube::Error> {
    let text = Some(format!("Hello, {}.", greeting.spec.name));
    if greeting.status.as_ref().is_some_and(|status| status.text == text) {
        return Ok(Action::await_change());
    }
    let status = Patch::Apply(json!({
        "apiVersion": "bench.coracle.dev/v1",
        "kind": "Greeting",
        "status": GreetingStatus { text },
    }));
    let parameters = PatchParams::apply("kube-rs").force();
    greetings.patch_status(&greeting.name_any(), &parameters, &status).await?;
    Ok(Action::await_change())
}

async fn reconcile(
    greeting: Arc<Greeting>,
    greeter: Arc<Greeter>,
) -> Result<Action, finalizer::Error<kube::Error>> {
    let namespace = greeting.namespace().unwrap_or_default();
    let greetings = Api::<Greeting>::namespaced(greeter.client.clone(), &namespace);
    if !greeter.cleanup {
        return greet(greeting, &greetings).await.map_err(finalizer::Error::ApplyFailed);
    }
    finalizer(&greetings, FINALIZER, greeting, |event| async {
        match event {
            finalizer::Event::Apply(greeting) => greet(greeting, &greetings).await,
            finalizer::Event::Cleanup(_) => Ok(Action::await_change()),
        }
    })
    .await
}

fn on_error(
    _: Arc<Greeting>,
    error: &finalizer::Error<kube::Error>,
    _: Arc<Greeter>,
) -> Action {
    eprintln!("{error}");
    Action::requeue(Duration::from_secs(1))
}

/// Runs until the input ends; answers each line of it with the usage so far.
pub async fn run(kubeconfig: &str, cleanup: bool) -> Result<(), Failure> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let (reader, writer) = reflector::store();
    let greetings = watcher(Api::<Greeting>::all(client.clone()), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        // The finalizer is added in a run of its own, and its event causes the next.
        .predicate_filter(
            predicates::generation.combine(predicates::finalizers),
            Default::default(),
        );
    let controller = Controller::for_stream(greetings, reader)
        .with_config(controller::Config::default().concurrency(10))
        .run(reconcile, on_error, Arc::new(Greeter { client, cleanup }))
        .for_each(|_| async {});
    tokio::spawn(controller);
    let mut lines = BufReader::new(stdin()).lines();
    while lines.next_line().await?.is_some() {
        tell(&json!({ "cpu": cpu_microseconds(), "pid": std::process::id() }))?;
    }
    Ok(())
}
