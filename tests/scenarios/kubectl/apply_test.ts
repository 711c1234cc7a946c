import assert from "node:assert/strict";
import { kubectlTest } from "../../support/kubectl_test_case.ts";
import { temporaryFolder, writeText } from "../../support/temporary_folder.ts";

/** Several documents in one file. */
const MANIFESTS = `
apiVersion: v1
kind: ConfigMap
metadata: { name: settings, labels: { app: web } }
data: { color: blue, size: "1" }
---
apiVersion: v1
kind: Service
metadata: { name: web, labels: { app: web } }
spec: { selector: { app: web }, ports: [{ port: 80 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, labels: { app: web } }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: "nginx:1" }] }
`;

const RED = MANIFESTS.replace("blue", "red");

kubectlTest(
  "kubectl apply creates, leaves unchanged, and configures",
  async (kubectl) => {
    assert.equal(
      await kubectl.feed(MANIFESTS, "apply -f -"),
      "configmap/settings created\nservice/web created\ndeployment.apps/web created\n",
    );
    assert.equal(
      await kubectl.feed(MANIFESTS, "apply -f -"),
      "configmap/settings unchanged\nservice/web unchanged\ndeployment.apps/web unchanged\n",
    );
    assert.match(
      await kubectl.feed(RED, "apply -f -"),
      /^configmap\/settings configured\nservice\/web unchanged\n/,
    );
    const color = await kubectl.run(
      "get configmap settings -o jsonpath={.data.color}",
    );
    assert.equal(color, "red");
  },
);

kubectlTest(
  "kubectl apply removes fields that its file no longer has",
  async (kubectl) => {
    await kubectl.feed(MANIFESTS, "apply -f -");
    await kubectl.run("label configmap settings kept=yes");
    await kubectl.feed(
      MANIFESTS.replace(', size: "1"', "").replace(
        "labels: { app: web }",
        "labels: { tier: front }",
      ),
      "apply -f -",
    );
    assert.equal(
      await kubectl.run("get configmap settings -o jsonpath={.data}"),
      '{"color":"blue"}',
    );
    assert.equal(
      await kubectl.run(
        "get configmap settings -o jsonpath={.metadata.labels}",
      ),
      '{"kept":"yes","tier":"front"}',
    );
  },
);

kubectlTest(
  "kubectl apply --dry-run=server reports and writes nothing",
  async (kubectl) => {
    assert.match(
      await kubectl.feed(MANIFESTS, "apply --dry-run=server -f -"),
      /^configmap\/settings created \(server dry run\)\n/,
    );
    assert.equal(
      await kubectl.run("get configmap settings --ignore-not-found"),
      "",
    );
  },
);

kubectlTest("kubectl diff shows what apply would change", async (kubectl) => {
  await kubectl.feed(MANIFESTS, "apply -f -");
  assert.equal(await kubectl.feed(MANIFESTS, "diff -f -"), "");
  const { code, stdout } = await kubectl.result("diff -f -", [], RED);
  assert.equal(code, 1, "1 says that there are differences");
  assert.match(stdout, /^- {2}color: blue\n\+ {2}color: red$/m);
  assert.doesNotMatch(stdout, /^[-+] {2}size/m);
});

kubectlTest(
  "kubectl apply --server-side gets conflicts and can force them",
  async (kubectl) => {
    const applyAs = "apply --server-side --field-manager";
    await kubectl.feed(MANIFESTS, `${applyAs}=first -f -`);
    assert.match(
      await kubectl.feed(MANIFESTS, `${applyAs}=second -f -`),
      /^configmap\/settings serverside-applied\n/,
    );
    const refusal = await kubectl.feedFails(RED, `${applyAs}=second -f -`);
    assert.match(
      refusal,
      /Apply failed with 1 conflict: conflict with "first": \.data\.color/,
    );
    await kubectl.feed(RED, `${applyAs}=second --force-conflicts -f -`);
    const managers = JSON.parse(
      await kubectl.run(
        "get configmap settings --show-managed-fields -o jsonpath={.metadata.managedFields}",
      ),
    ) as { manager: string; fieldsV1: { "f:data": object } }[];
    const fields = Object.fromEntries(
      managers.map(({ manager, fieldsV1 }) => [
        manager,
        Object.keys(fieldsV1["f:data"]),
      ]),
    );
    assert.deepEqual(fields, {
      first: ["f:size"],
      second: ["f:color", "f:size"],
    });
  },
);

kubectlTest(
  "kubectl apply migrates to server-side apply and keeps the manager",
  async (kubectl) => {
    await kubectl.feed(MANIFESTS, "apply -f -");
    assert.match(
      await kubectl.feed(RED, "apply --server-side -f -"),
      /^configmap\/settings serverside-applied\n/,
    );
    assert.equal(
      await kubectl.run("get configmap settings -o jsonpath={.data.color}"),
      "red",
    );
  },
);

kubectlTest(
  "kubectl apply names the field that is unknown or wrong",
  async (kubectl) => {
    const unknown = MANIFESTS.replace("replicas: 2", "replicaz: 2");
    assert.match(
      await kubectl.feedFails(unknown, "apply -f -"),
      /strict decoding error: unknown field "spec\.replicaz"/,
    );
    const wrong = MANIFESTS.replace("name: web, image", "name: WEB_, image");
    assert.match(
      await kubectl.feedFails(wrong, "apply -f -"),
      /Deployment.* "web" is invalid: spec\.template\.spec\.containers\[0\]\.name: Invalid value: "WEB_"/s,
    );
  },
);

kubectlTest(
  "kubectl create refuses an existing name, replace a missing one",
  async (kubectl) => {
    await kubectl.feed(MANIFESTS, "create -f -");
    assert.match(
      await kubectl.fails("create configmap settings --from-literal=a=b"),
      /configmaps "settings" already exists/,
    );
    assert.match(
      await kubectl.feed(RED, "replace -f -"),
      /^configmap\/settings replaced\n/,
    );
    await kubectl.run("delete configmap settings");
    assert.match(
      await kubectl.feedFails(RED, "replace -f -"),
      /configmaps "settings" not found/,
    );
  },
);

kubectlTest(
  "kubectl create creates every valid document of a file, lists too",
  async (kubectl) => {
    const map = (name: string) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name },
    });
    const items = [map("second"), map("third")];
    const documents = [
      "# Nothing but a comment.",
      JSON.stringify(map("first")),
      JSON.stringify(map("NOT_ALLOWED")),
      JSON.stringify({ apiVersion: "v1", kind: "List", items }),
    ].join("\n---\n");
    const folder = temporaryFolder();
    const file = writeText(folder, "documents.yaml", documents);
    const { code, stdout, stderr } = await kubectl.result("create -f", [file]);
    assert.equal(code, 1);
    assert.match(stderr, /"NOT_ALLOWED" is invalid: metadata\.name/);
    assert.deepEqual(
      stdout.match(/\S+(?= created\n)/g),
      ["configmap/first", "configmap/second", "configmap/third"],
    );
    // What a list shows can be applied again, by the folder it is in.
    const shown = await kubectl.run("get cm first second -o yaml");
    writeText(folder, "documents.yaml", shown);
    assert.match(
      await kubectl.run("apply --server-side --force-conflicts -f", folder),
      /^configmap\/first serverside-applied\nconfigmap\/second /,
    );
  },
);
