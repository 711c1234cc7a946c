//! A controller of kube-rs on the embedded API server.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher;
use kube::{Api, Client, Config, CustomResource, CustomResourceExt, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "coracle.dev",
    version = "v1",
    kind = "Greeting",
    namespaced,
    status = "GreetingStatus"
)]
struct GreetingSpec {
    #[schemars(length(min = 3))]
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct GreetingStatus {
    text: String,
}

/// API server of a test, in a process of its own.
struct Server {
    process: Child,
    kubeconfig: std::path::PathBuf,
}

impl Server {
    async fn start() -> Self {
        let command = std::env::var("CORACLE")
            .unwrap_or_else(|_| "npx -y -p @coracle/operator coracle".into());
        let words: Vec<&str> = command.split(' ').collect();
        let kubeconfig = std::env::temp_dir().join(format!("coracle-{}", std::process::id()));
        let mut process = Command::new(words[0])
            .args(&words[1..])
            .args(["apiserver", "--port=0"])
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("coracle starts");
        // The kubeconfig is written when the server is ready.
        while !kubeconfig.exists() {
            assert!(process.try_wait().unwrap().is_none(), "coracle ended");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Self {
            process,
            kubeconfig,
        }
    }

    async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        Client::try_from(config.unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let namespace = greeting.namespace().unwrap();
    let name = greeting.name_any();
    let text = format!("Hello, {}", greeting.spec.name);
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: greeting.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..Default::default()
        },
        data: Some(BTreeMap::from([("text".into(), text.clone())])),
        ..Default::default()
    };
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    let apply = PatchParams::apply("greeting").force();
    maps.patch(&name, &apply, &Patch::Apply(&map)).await?;
    let greetings: Api<Greeting> = Api::namespaced((*client).clone(), &namespace);
    let status = serde_json::json!({ "status": GreetingStatus { text } });
    greetings
        .patch_status(&name, &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    Ok(Action::await_change())
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), future)
        .await
        .unwrap_or_else(|_| panic!("{what} takes too long"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_reconciles_and_the_server_collects_garbage() {
    let server = Server::start().await;
    let client = server.client().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions
        .create(&PostParams::default(), &Greeting::crd())
        .await
        .unwrap();
    let established = await_condition(
        definitions,
        "greetings.coracle.dev",
        conditions::is_crd_established(),
    );
    within("the definition", established).await.unwrap();

    let greetings: Api<Greeting> = Api::namespaced(client.clone(), "default");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let controller = Controller::new(greetings.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, error, _| {
                eprintln!("{error}");
                Action::requeue(Duration::from_secs(1))
            },
            Arc::new(client.clone()),
        );
    let running = tokio::spawn(controller.for_each(|_| async {}));

    let wrong = Greeting::new("wrong", GreetingSpec { name: "X".into() });
    let refusal = greetings.create(&PostParams::default(), &wrong).await;
    match refusal {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 422);
            assert!(
                status
                    .message
                    .contains("spec.name in body should be at least 3 chars long")
            );
        }
        other => panic!("{other:?}"),
    }

    let greeting = Greeting::new("one", GreetingSpec { name: "Ada".into() });
    greetings
        .create(&PostParams::default(), &greeting)
        .await
        .unwrap();
    let greeted = await_condition(greetings.clone(), "one", |found: Option<&Greeting>| {
        found
            .and_then(|greeting| greeting.status.as_ref())
            .is_some_and(|status| status.text == "Hello, Ada")
    });
    within("the status", greeted).await.unwrap();
    let map = maps.get("one").await.unwrap();
    assert_eq!(map.data.unwrap()["text"], "Hello, Ada");

    greetings
        .delete("one", &DeleteParams::default())
        .await
        .unwrap();
    let uid = map.metadata.uid.unwrap();
    let gone = await_condition(maps, "one", conditions::is_deleted(&uid));
    within("garbage collection", gone).await.unwrap();
    running.abort();
}
